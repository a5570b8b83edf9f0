//! castle-cron's znodes beside the records: `/servers`, `/jobs`, `/nextjob` and `/joblock`, as its document describes
//! them. Clients of castle-cron read and change them; the records stay the truth. Nothing here decides a claim.

mod definitions;
mod follow;
mod import;
mod job_lock;
mod job_texts;
mod next_job;
mod schedule_index;
mod servers;
mod shared;
mod times;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_store::{Fault, NodeListChange, lock_mutex};
use tokio::runtime::Handle;
use tokio::sync::Notify;

pub use self::import::{RawCastleJob, read_castle_jobs};
use self::job_texts::JobTexts;
pub(crate) use self::next_job::NextJobWriter;
pub(crate) use self::schedule_index::{ScheduleIndex, ScheduleOverlay};
use self::servers::ServerRegistry;
use crate::ensemble::Ensemble;
use crate::mirror::RecordMirror;

/// castle-cron's znodes of a store.
#[derive(Debug)]
pub(crate) struct CastleZnodes {
    ensemble: Arc<Ensemble>,
    mirror: Arc<RecordMirror>,
    /// The texts of `/jobs`, as they are known now.
    texts: Arc<JobTexts>,
    servers: ServerRegistry,
    next_job: Arc<NextJobWriter>,
    is_started: AtomicBool,
    /// Names of definitions that other programs have changed.
    changed: Mutex<BTreeSet<String>>,
    has_changed: Notify,
    /// Changes of `/servers` that were not reported yet.
    server_changes: Mutex<Vec<NodeListChange>>,
    has_server_changes: Notify,
}

impl CastleZnodes {
    pub(crate) fn new(ensemble: Arc<Ensemble>, mirror: Arc<RecordMirror>) -> Self {
        let texts = Arc::new(JobTexts::default());
        let next_job = NextJobWriter::new(Arc::clone(&mirror), Arc::clone(&texts), ensemble.paths().castle_next_job());
        Self {
            ensemble,
            mirror,
            texts,
            servers: ServerRegistry::default(),
            next_job: Arc::new(next_job),
            is_started: AtomicBool::new(false),
            changed: Mutex::default(),
            has_changed: Notify::new(),
            server_changes: Mutex::default(),
            has_server_changes: Notify::new(),
        }
    }

    /// The part that commits use.
    pub(crate) fn next_job(&self) -> Arc<NextJobWriter> {
        Arc::clone(&self.next_job)
    }

    /// Follows the znodes until the store is closed, if that was not started before.
    fn start(self: &Arc<Self>, runtime: &Handle) {
        if !self.is_started.swap(true, Ordering::Relaxed) {
            self.mirror.start(runtime);
            runtime.spawn(follow::follow(Arc::clone(self)));
        }
    }

    /// Waits until other programs have changed definitions.
    async fn definition_changes(&self) -> Vec<String> {
        loop {
            let names = std::mem::take(&mut *lock_mutex(&self.changed));
            if !names.is_empty() {
                return names.into_iter().collect();
            }
            self.has_changed.notified().await;
        }
    }

    fn report_changed(&self, names: impl IntoIterator<Item = String>) {
        lock_mutex(&self.changed).extend(names);
        self.has_changed.notify_one();
    }

    /// Waits until servers have joined or left.
    async fn server_changes(&self) -> NodeListChange {
        loop {
            {
                let mut changes = lock_mutex(&self.server_changes);
                if !changes.is_empty() {
                    return changes.remove(0);
                }
            }
            self.has_server_changes.notified().await;
        }
    }

    fn report_servers(&self, change: NodeListChange) {
        /// Changes that wait to be logged. Beyond that the oldest are dropped; each has the list of all servers.
        const CHANGES_MAX: usize = 100;
        let mut changes = lock_mutex(&self.server_changes);
        if changes.len() >= CHANGES_MAX {
            changes.remove(0);
        }
        changes.push(change);
        drop(changes);
        self.has_server_changes.notify_one();
    }

    /// Reads all jobs of castle-cron's znodes.
    async fn load_texts(&self) -> Result<(), Fault> {
        let session = self.ensemble.session().await?;
        self.texts.reload(&session, self.ensemble.paths()).await.map(drop)
    }
}
