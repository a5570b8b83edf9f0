//! Checkpoints: copies the write-ahead log into the database. SQLite would do it inside a commit, while callers wait;
//! here a separate thread does it. If that thread cannot keep up, the writer thread helps, because the log restarts
//! only at a moment when all of it is copied and no connection appends.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cronhold_schedule::{Instant, Span};
use cronhold_store::ClockFn;
use cronhold_store::lock_mutex;
use rusqlite::Connection;

use crate::open::{Options, open_again};

/// Log length in pages that starts a checkpoint: 32 MB. Pages that change often are copied once for many changes.
const CHECKPOINT_PAGES: i32 = 8 * 1024;

/// Log length in pages at which the writer thread checkpoints by itself: 128 MB.
const WRITER_HELPS_PAGES: i32 = 32 * 1024;

/// Log length in pages that starts a checkpoint if the last one was some seconds ago: 2 MB. This keeps the log short on
/// a store with few writes.
const IDLE_CHECKPOINT_PAGES: i32 = 512;
const IDLE_CHECKPOINT_AFTER: Span = Span::from_secs(5);

/// Pages that must be added before the next checkpoint. A reader may block one.
const CHECKPOINT_STEP: i32 = 1024;

const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// The thread that checkpoints.
pub(super) struct Checkpointer {
    clock: ClockFn,
    signal: Arc<CheckpointSignal>,
    thread: Option<JoinHandle<()>>,
    /// The log length at the last checkpoint.
    last: i32,
    /// The time of the last checkpoint.
    last_time: Instant,
}

/// The length of the log in pages, after the last commit.
#[derive(Debug, Clone, Default)]
pub(super) struct LogLength(Arc<AtomicI32>);

#[derive(Debug, Default)]
struct CheckpointSignal {
    state: Mutex<CheckpointState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CheckpointState {
    is_requested: bool,
    is_closed: bool,
}

impl LogLength {
    /// Watches the commits of a connection.
    pub(super) fn watch(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let pages = Arc::clone(&self.0);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count| {
            pages.store(count, Ordering::Relaxed);
            Ok(())
        }))
    }
}

impl Checkpointer {
    /// Starts the thread. If that fails, the writer thread checkpoints by itself.
    pub(super) fn start(path: PathBuf, options: Options) -> Self {
        let signal = Arc::new(CheckpointSignal::default());
        let clock = Arc::clone(&options.clock);
        let thread_signal = Arc::clone(&signal);
        let work = move || {
            let mut connection = None;
            while thread_signal.wait() {
                // After a failure the log grows, and the next checkpoint is due soon.
                let opened = connection.take().map_or_else(|| open_again(&path, &options), Ok);
                connection = opened.ok().filter(|connection: &Connection| copy(connection).is_ok());
            }
        };
        let thread = std::thread::Builder::new().name("sqlite checkpoint".to_owned()).spawn(work).ok();
        Self { signal, thread, last: 0, last_time: clock(), clock }
    }

    /// Requests a checkpoint after a commit, if one is due.
    pub(super) fn run_if_due(&mut self, length: &LogLength, writer: &Connection) {
        let pages = length.0.load(Ordering::Relaxed);
        if pages < self.last {
            // The log has restarted.
            self.last = 0;
        }
        let is_long = pages >= CHECKPOINT_PAGES && pages >= self.last + CHECKPOINT_STEP;
        let now = (self.clock)();
        // If the clock was set back, do not wait longer.
        let is_time = now < self.last_time || now.since(self.last_time) >= IDLE_CHECKPOINT_AFTER;
        let is_old = pages >= IDLE_CHECKPOINT_PAGES && pages > self.last && is_time;
        if !is_long && !is_old {
            return;
        }
        self.last = pages;
        self.last_time = now;
        if pages >= WRITER_HELPS_PAGES || self.thread.is_none() {
            // After a failure the log grows, and the next checkpoint is due soon.
            let _ = copy(writer);
        } else {
            self.signal.lock().is_requested = true;
            self.signal.changed.notify_one();
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.signal.lock().is_closed = true;
        self.signal.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl CheckpointSignal {
    /// Waits for a request. Returns false if the store is closing.
    fn wait(&self) -> bool {
        let is_idle = |state: &mut CheckpointState| !state.is_requested && !state.is_closed;
        let mut state = self.changed.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        state.is_requested = false;
        !state.is_closed
    }

    fn lock(&self) -> MutexGuard<'_, CheckpointState> {
        lock_mutex(&self.state)
    }
}

/// Copies pages that no reader needs in the log, without waiting for readers or the writer.
fn copy(connection: &Connection) -> rusqlite::Result<()> {
    let copied = connection.prepare_cached(PASSIVE)?.query_row([], |_| Ok(()));
    copied.inspect_err(|error| tracing::debug!(event = "sqlite_checkpoint_failed", "{error}"))
}
