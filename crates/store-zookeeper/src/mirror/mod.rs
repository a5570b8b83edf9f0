//! A copy of all records in memory. ZooKeeper has no lists but those of names, so lists are answered from this copy, after
//! it was brought up to date. A task follows the changes by one watch on all records, and reports them as hints.

mod follow;
mod state;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_core::JobId;
use cronhold_core::record::{JobRecord, Record, RecordKey};
use cronhold_schedule::ZoneRegistry;
use cronhold_store::{Fault, HandleId, Hint, HintBoard, RecordTables, lock_mutex};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use self::state::MirrorState;
use crate::castle::ScheduleIndex;
use crate::ensemble::Ensemble;
use crate::expiry;
use crate::faults;
use crate::known_znodes::KnownZnodes;
use crate::writer_registry::WriterRegistry;

/// Requests that wait for the mirror to be brought up to date.
const REQUESTS_MAX: usize = 256;

/// Loading everything may take longer than one request.
const LOAD_TIMEOUTS: u32 = 6;

/// A change as a hint, and the handle of this process that made it.
type NamedHint = (Option<HandleId>, Hint);

/// The copy of the records.
#[derive(Debug)]
pub(crate) struct RecordMirror {
    ensemble: Arc<Ensemble>,
    zones: Arc<ZoneRegistry>,
    writers: Arc<WriterRegistry>,
    board: Arc<HintBoard>,
    known: Arc<KnownZnodes>,
    state: Mutex<MirrorState>,
    is_started: AtomicBool,
    /// Whether all records were read once.
    is_loaded: AtomicBool,
    /// Notified when a job is next at another time.
    times_changed: Notify,
    requests: mpsc::Sender<oneshot::Sender<()>>,
    /// Taken by the task when it starts.
    received: Mutex<Option<mpsc::Receiver<oneshot::Sender<()>>>>,
}

impl RecordMirror {
    /// An empty mirror that does not follow changes yet.
    pub(crate) fn new(
        ensemble: Arc<Ensemble>,
        zones: Arc<ZoneRegistry>,
        writers: Arc<WriterRegistry>,
        board: Arc<HintBoard>,
        known: Arc<KnownZnodes>,
    ) -> Self {
        let (requests, received) = mpsc::channel(REQUESTS_MAX);
        Self {
            ensemble,
            zones,
            writers,
            board,
            known,
            state: Mutex::default(),
            is_started: AtomicBool::new(false),
            is_loaded: AtomicBool::new(false),
            times_changed: Notify::new(),
            requests,
            received: Mutex::new(Some(received)),
        }
    }

    /// Starts to follow changes, if that was not done before.
    pub(crate) fn start(self: &Arc<Self>, runtime: &Handle) {
        if self.is_started.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(received) = lock_mutex(&self.received).take() {
            runtime.spawn(follow::follow(Arc::clone(self), received));
        }
    }

    /// Brings the mirror up to date, and reads from it: it has everything that was written before the call.
    pub(crate) async fn read<T>(self: &Arc<Self>, read: impl FnOnce(&RecordTables) -> T) -> Result<T, Fault> {
        self.start(&Handle::current());
        self.ensemble.session().await?.sync().await?;
        let (done, is_done) = oneshot::channel();
        let servers = self.ensemble.url().server_list();
        let slow = || faults::unreachable(&servers, "the records are not loaded yet");
        let update = async {
            self.requests.send(done).await.map_err(|_| slow())?;
            is_done.await.map_err(|_| slow())
        };
        timeout(self.ensemble.url().settings().timeout * LOAD_TIMEOUTS, update).await.map_err(|_| slow())??;
        Ok(read(lock_mutex(&self.state).tables()))
    }

    /// Works with the times of jobs and with the records as they are known now.
    pub(crate) fn with_schedule<T>(&self, work: impl FnOnce(&mut ScheduleIndex) -> T) -> T {
        let mut state = lock_mutex(&self.state);
        let result = work(state.schedule());
        let has_changes = state.schedule().has_changes();
        drop(state);
        if has_changes {
            self.times_changed.notify_one();
        }
        result
    }

    /// The definition of a job as it is known now.
    pub(crate) fn job(&self, id: &JobId) -> Option<Arc<JobRecord>> {
        match &lock_mutex(&self.state).tables().get(&RecordKey::Job(id.clone()))?.record {
            Record::Job(job) => Some(Arc::clone(job)),
            _ => None,
        }
    }

    /// Whether all records are known.
    pub(crate) fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Relaxed)
    }

    /// Waits until a job is next at another time.
    pub(crate) async fn times_changed(&self) {
        self.times_changed.notified().await;
    }

    /// Deletes znodes of records that were deleted long ago. Only a mirror that follows changes knows them.
    pub(crate) async fn delete_emptied(&self) -> Result<(), Fault> {
        if !self.is_started.load(Ordering::Relaxed) {
            return Ok(());
        }
        let session = self.ensemble.session().await?;
        let seal = self.ensemble.seal().check(&session, true).await?;
        let now = self.ensemble.lock_time().await?;
        let emptied = lock_mutex(&self.state).emptied(self.ensemble.paths());
        for (path, stat) in emptied {
            expiry::delete_emptied(&session, &seal, &path, &stat, now).await?;
        }
        Ok(())
    }

    /// Sends hints to all handles except those that made the changes.
    fn publish(&self, hints: Vec<NamedHint>) {
        /// No handle of a board has this id.
        const NO_HANDLE: HandleId = HandleId::from_bits(u64::MAX);
        let mut hints = hints.into_iter().peekable();
        while let Some((by, first)) = hints.next() {
            let mut group = vec![first];
            while let Some((_, hint)) = hints.next_if(|(next, _)| *next == by) {
                group.push(hint);
            }
            self.board.publish(by.unwrap_or(NO_HANDLE), &group);
        }
    }
}
