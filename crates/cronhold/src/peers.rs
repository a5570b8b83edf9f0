//! Runs the follower of Cronken in the daemon: gives it a thread and a clock, logs its reports, and shows invalid
//! definitions next to mistakes in job files.

use std::io;
use std::sync::Arc;
use std::thread;

use cronhold_api::FileMistake;
use cronhold_core::NodeId;
use cronhold_cronken::{
    CronkenFollower, FollowerObserver, InvalidDefinition, ReconcileRequests, ReportLevel, SharedJobReport,
};
use cronhold_engine::NodeHandle;
use cronhold_server::MistakeAt;
use cronhold_store::{NodeListChange, Store};
use tokio::sync::oneshot;
use tracing::info;

use crate::clock::SystemClock;
use crate::job_files::{JobDirectories, JobFileStatus};
use crate::log::{Log, Weight};

/// The text that invalid definitions show instead of a file name.
const SHARED_JOBS: &str = "shared jobs";

/// The follower, before its thread is started.
#[derive(Debug)]
pub(crate) struct CronkenThread {
    follower: CronkenFollower,
    log: Log,
}

/// Passes reports on to the log and to the list of mistakes.
#[derive(Debug)]
struct DaemonObserver {
    log: Log,
    status: Arc<JobFileStatus>,
}

impl CronkenThread {
    /// The follower of a node.
    pub(crate) fn new(
        files: &JobDirectories,
        store: &Arc<dyn Store>,
        node: &NodeHandle,
        node_id: NodeId,
        requests: Arc<ReconcileRequests>,
        log: &Log,
    ) -> Self {
        let (store, node, zones) = (Arc::clone(store), node.clone(), Arc::clone(&files.world().zones));
        let observer = Arc::new(DaemonObserver { log: log.clone(), status: files.status() });
        Self { follower: CronkenFollower { store, node, node_id, zones, requests, observer }, log: log.clone() }
    }

    /// Starts the thread, and waits until all jobs were reconciled for the first time. Does nothing if the store is not
    /// shared.
    pub(crate) async fn begin(self) {
        if self.follower.store.shared().is_none() {
            return;
        }
        let log = self.log.clone();
        match self.start() {
            // If the thread ends without a reply, it has logged why.
            Ok(is_ready) => drop(is_ready.await),
            Err(error) => log_failure(&log, &error),
        }
    }

    fn start(self) -> io::Result<oneshot::Receiver<()>> {
        let Self { follower, log } = self;
        let executor = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (ready, is_ready) = oneshot::channel();
        thread::Builder::new().name("peers".to_owned()).spawn(move || {
            executor.block_on(async {
                match SystemClock::new() {
                    Ok(clock) => follower.run(&clock, ready).await,
                    Err(error) => log_failure(&log, &error),
                }
            });
        })?;
        Ok(is_ready)
    }
}

fn log_failure(log: &Log, error: &io::Error) {
    let message = format!("cannot follow the jobs and events shared with other programs: {error}");
    log.emit(Weight::Trouble, "foreign_unheard", message);
}

impl FollowerObserver for DaemonObserver {
    fn on_report(&self, report: &SharedJobReport) {
        let weight = match report.level() {
            ReportLevel::Debug => Weight::Detail,
            ReportLevel::Info => Weight::Usual,
            ReportLevel::Warn => Weight::Trouble,
        };
        if let SharedJobReport::NodeListChanged(NodeListChange { joined, left, all }) = report {
            let [joined, left, all] = [joined, left, all].map(|names| names.join(", "));
            info!(event = report.event_name(), joined, left, all, "{report}");
            return;
        }
        self.log.emit(weight, report.event_name(), report.to_string());
    }

    fn set_invalid_definitions(&self, invalid: Vec<InvalidDefinition>) {
        let mistakes = invalid.into_iter().map(|InvalidDefinition { job, mistake }| {
            let path = if mistake.path.is_empty() { String::new() } else { format!("{}: ", mistake.path) };
            let (file, message) = (SHARED_JOBS.to_owned(), format!("{path}{}", mistake.message));
            // A definition is one line of JSON, and its fields are found by their paths.
            let mistake = FileMistake { file, line: 1, column: 1, message, hint: mistake.hint };
            MistakeAt { job: Some(job), mistake }
        });
        self.status.set_shared_mistakes(mistakes.collect());
    }

    fn on_commit(&self) {
        self.log.commits();
    }
}
