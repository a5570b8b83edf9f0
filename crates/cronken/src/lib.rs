//! Everything that exists only for Cronken, a scheduler whose Redis Cronhold can share. The rest of Cronhold can be read
//! without this crate: to the core, Cronken is one *foreign system*.
//!
//! Cronken's clients write job definitions into a shared hash and publish events to all nodes. Cronhold carries out both,
//! and writes its own jobs into the same hash in Cronken's form. Definitions of castle-cron, which shares a ZooKeeper in the
//! same way, are reconciled by the same rules; only their form differs.
//!
//! In reading order: [`definition`] reads and writes Cronken's form of a job; [`event`] parses its events; `plan` decides
//! what one job needs so that its definition and its record agree; `snapshot` loads definitions and records; `reconciler`
//! carries out the plans of all jobs; `report_history` remembers what it has reported; `requests` collects what it has to
//! do; `event_handler` acts on events; `follower` runs all of it; `report` is what the follower reports to the daemon.

pub mod definition;
pub mod event;
mod event_handler;
mod follower;
mod plan;
mod plan_castle;
mod reconciler;
mod report;
mod report_history;
mod requests;
mod snapshot;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cronhold_core::JobUid;
use cronhold_engine::NodeHandle;
use cronhold_schedule::ZoneRegistry;
use cronhold_store::{Fault, Store};

pub use follower::CronkenFollower;
pub use report::{EventOutcome, FollowerObserver, InvalidDefinition, ReportLevel, SharedJobReport};
pub use requests::ReconcileRequests;

/// Reconciles all jobs with their shared definitions once, for a command that works on a store without a daemon. Does
/// nothing if the store is not shared. Definitions whose time depends on which nodes are running are left to the daemons.
pub async fn reconcile_once(store: Arc<dyn Store>, node: NodeHandle, zones: Arc<ZoneRegistry>) -> Result<(), Fault> {
    let mut reconciler = reconciler::Reconciler::new(store, node, zones).for_command();
    let known = reconciler::AlreadyNotified::default();
    reconciler.reconcile(&snapshot::JobScope::All, false, &known).await.map(drop)
}

/// The uid of a new job. A random run id is as unique as a uid has to be.
fn new_job_uid(node: &NodeHandle) -> JobUid {
    JobUid::parse(&node.random_run_id().to_string()).expect("both are 32 hexadecimal digits")
}
