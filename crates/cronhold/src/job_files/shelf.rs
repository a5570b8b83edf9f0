//! What others know of the job files: what is wrong with them now, and the calendars that they hold. Whoever wants them to
//! be looked at rings here.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cronhold_api::ReloadReport;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Actor, Record, RecordKey};
use cronhold_core::{DecisionContext, JobId};
use cronhold_engine::queue::BoundedQueue;
use cronhold_engine::{EngineEvent, EngineObserver};
use cronhold_jobfile::directory::JobsRoot;
use cronhold_server::{JobFilesPort, MistakeAt};
use cronhold_store::Pending;
use tokio::sync::oneshot;

use crate::log::{Log, Weight};

/// Requests that may wait.
const REQUESTS_MAX: usize = 64;

/// What others know of the job files.
#[derive(Debug)]
pub struct JobFileStatus {
    /// The directories.
    roots: Vec<JobsRoot>,
    mistakes: Mutex<Arc<Vec<MistakeAt>>>,
    /// What is wrong with definitions that other programs share with us.
    shared_mistakes: Mutex<Vec<MistakeAt>>,
    has_mistakes: AtomicBool,
    world: Mutex<DecisionContext>,
    /// Jobs that come from elsewhere than the directories.
    elsewhere: Mutex<BTreeSet<JobId>>,
    pub(super) requests: BoundedQueue<JobFileRequest>,
}

/// What is wanted.
#[derive(Debug)]
pub(super) enum JobFileRequest {
    /// Something may be other than it was.
    Look,
    /// Somebody wants all of it to be read, and waits for the answer.
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
        lock(&self.world).clone()
    }

    pub(super) fn set_world(&self, world: DecisionContext) {
        *lock(&self.world) = world;
    }

    pub(super) fn set_mistakes(&self, mistakes: Vec<MistakeAt>) {
        self.has_mistakes.store(!mistakes.is_empty(), Ordering::Relaxed);
        *lock(&self.mistakes) = Arc::new(mistakes);
    }

    /// What is wrong with definitions that other programs share with us is shown where mistakes of files are.
    pub(crate) fn set_shared_mistakes(&self, mistakes: Vec<MistakeAt>) {
        *lock(&self.shared_mistakes) = mistakes;
    }

    pub(super) fn set_elsewhere(&self, ids: BTreeSet<JobId>) {
        *lock(&self.elsewhere) = ids;
    }

    pub(super) fn elsewhere(&self) -> BTreeSet<JobId> {
        lock(&self.elsewhere).clone()
    }

    /// Asks for a look. When many wait there will be one anyway.
    pub(super) fn ring(&self) {
        let _ = self.requests.try_send(JobFileRequest::Look);
    }

    /// Has all files read again, because a signal asked for it.
    pub fn reload_for_signal(&self, log: &Log) {
        if self.roots.is_empty() {
            let words = "received SIGHUP; there is no directory of job files to reload";
            return log.emit(Weight::Usual, "reload_ignored", words);
        }
        log.emit(Weight::Usual, "reload_requested", "received SIGHUP; reloading job files");
        // What comes of it is told as always; nobody waits for the answer.
        let _ = self.requests.try_send(JobFileRequest::Reload(oneshot::channel().0));
    }

    fn note(&self, change: &RecordChange) {
        let is_news = match change {
            RecordChange::Put(Record::Job(job)) => lock(&self.elsewhere).insert(job.id.clone()),
            RecordChange::Delete(RecordKey::Job(job)) => lock(&self.elsewhere).remove(job),
            _ => false,
        };
        // A job that comes or goes can be what a file with a mistake waits for.
        if is_news && self.has_mistakes.load(Ordering::Relaxed) {
            self.ring();
        }
    }
}

impl EngineObserver for JobFileStatus {
    fn on_event(&self, news: &EngineEvent<'_>) {
        if let EngineEvent::Committed { stamp, done } = news
            && !self.roots.is_empty()
            && stamp.actor != Actor::JobFiles
        {
            done.changes.iter().for_each(|change| self.note(change));
        }
    }
}

impl JobFilesPort for JobFileStatus {
    fn mistakes(&self) -> Vec<MistakeAt> {
        let shared = lock(&self.shared_mistakes).clone();
        lock(&self.mistakes).iter().cloned().chain(shared).collect()
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here can panic half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
