//! The status of the job files that other parts of the daemon see: current mistakes and calendars. They also send their
//! requests to read the files here.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_api::ReloadReport;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Actor, Record, RecordKey};
use cronhold_core::{DecisionContext, JobId};
use cronhold_engine::queue::BoundedQueue;
use cronhold_engine::{EngineEvent, EngineObserver};
use cronhold_jobfile::directory::JobsRoot;
use cronhold_server::{JobFilesPort, MistakeAt};
use cronhold_store::Pending;
use cronhold_store::lock_mutex;
use tokio::sync::oneshot;

use crate::log::{Log, Weight};

/// Requests that may be queued.
const REQUESTS_MAX: usize = 64;

/// The current mistakes, zones and calendars of the job files, and the queue of requests to read them.
#[derive(Debug)]
pub struct JobFileStatus {
    roots: Vec<JobsRoot>,
    mistakes: Mutex<Arc<Vec<MistakeAt>>>,
    /// Mistakes in definitions that are shared with other programs.
    shared_mistakes: Mutex<Vec<MistakeAt>>,
    has_mistakes: AtomicBool,
    world: Mutex<DecisionContext>,
    /// Stored jobs that do not come from these directories.
    elsewhere: Mutex<BTreeSet<JobId>>,
    pub(super) requests: BoundedQueue<JobFileRequest>,
}

/// A request to the thread that reads the files.
#[derive(Debug)]
pub(super) enum JobFileRequest {
    /// Check whether something has changed.
    Check,
    /// Read everything again, and send a report.
    Reload(oneshot::Sender<ReloadReport>),
}

impl JobFileStatus {
    pub(crate) fn new(roots: Vec<JobsRoot>, world: DecisionContext) -> Self {
        Self {
            roots,
            mistakes: Mutex::default(),
            shared_mistakes: Mutex::default(),
            has_mistakes: AtomicBool::new(false),
            world: Mutex::new(world),
            elsewhere: Mutex::default(),
            requests: BoundedQueue::new(REQUESTS_MAX),
        }
    }

    /// Zones and calendars as they are now.
    pub fn world(&self) -> DecisionContext {
        lock_mutex(&self.world).clone()
    }

    pub(super) fn set_world(&self, world: DecisionContext) {
        *lock_mutex(&self.world) = world;
    }

    pub(super) fn set_mistakes(&self, mistakes: Vec<MistakeAt>) {
        self.has_mistakes.store(!mistakes.is_empty(), Ordering::Relaxed);
        *lock_mutex(&self.mistakes) = Arc::new(mistakes);
    }

    /// Replaces the mistakes in definitions that are shared with other programs. They are listed with those of files.
    pub(crate) fn set_shared_mistakes(&self, mistakes: Vec<MistakeAt>) {
        *lock_mutex(&self.shared_mistakes) = mistakes;
    }

    pub(super) fn set_elsewhere(&self, ids: BTreeSet<JobId>) {
        *lock_mutex(&self.elsewhere) = ids;
    }

    pub(super) fn elsewhere(&self) -> BTreeSet<JobId> {
        lock_mutex(&self.elsewhere).clone()
    }

    /// Requests a check of the directories. If the queue is full, one is pending already.
    pub(super) fn request_check(&self) {
        let _ = self.requests.try_send(JobFileRequest::Check);
    }

    /// Reads all files again after a signal. Does not wait for the result.
    pub fn reload_for_signal(&self, log: &Log) {
        if self.roots.is_empty() {
            let message = "received SIGHUP; there is no directory of job files to reload";
            return log.emit(Weight::Usual, "reload_ignored", message);
        }
        log.emit(Weight::Usual, "reload_requested", "received SIGHUP; reloading job files");
        // The thread logs the result, so the report is not needed.
        let _ = self.requests.try_send(JobFileRequest::Reload(oneshot::channel().0));
    }

    fn track_change(&self, change: &RecordChange) {
        let has_changed = match change {
            RecordChange::Put(Record::Job(job)) => lock_mutex(&self.elsewhere).insert(job.id.clone()),
            RecordChange::Delete(RecordKey::Job(job)) => lock_mutex(&self.elsewhere).remove(job),
            _ => false,
        };
        // A job that was added or removed can fix the mistake of a file.
        if has_changed && self.has_mistakes.load(Ordering::Relaxed) {
            self.request_check();
        }
    }
}

impl EngineObserver for JobFileStatus {
    fn on_event(&self, news: &EngineEvent<'_>) {
        if let EngineEvent::Committed { stamp, done } = news
            && !self.roots.is_empty()
            && stamp.actor != Actor::JobFiles
        {
            done.changes.iter().for_each(|change| self.track_change(change));
        }
    }
}

impl JobFilesPort for JobFileStatus {
    fn mistakes(&self) -> Vec<MistakeAt> {
        let shared = lock_mutex(&self.shared_mistakes).clone();
        lock_mutex(&self.mistakes).iter().cloned().chain(shared).collect()
    }

    fn may_have_file(&self, job: &JobId) -> bool {
        self.roots.iter().any(|root| root.may_have_file(job))
    }

    fn reload(&self) -> Pending<'_, ReloadReport> {
        Box::pin(async {
            if self.roots.is_empty() {
                let summary = "there is no directory of job files: the daemon was started without --jobs";
                return ReloadReport { summary: summary.to_owned(), mistakes: 0 };
            }
            let (reply, answer) = oneshot::channel();
            self.requests.send(JobFileRequest::Reload(reply)).await;
            let stopping = |_| ReloadReport { summary: "the daemon is stopping".to_owned(), mistakes: 0 };
            answer.await.unwrap_or_else(stopping)
        })
    }
}
