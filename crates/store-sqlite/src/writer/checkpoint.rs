//! Copying the log back into the database. SQLite would do it inside a commit, while everybody waits; here a thread of
//! its own does it beside the writer. Only when it cannot keep up does the writer lend a hand, because the log can begin
//! anew only at a moment when all of it is copied and nobody appends.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cronhold_schedule::{Instant, Span};
use cronhold_store::Clock;
use rusqlite::Connection;

use crate::open::{Options, open_again};

/// Pages in the log from which on they are copied: 32 MB. Pages that change often are copied once for many changes.
const COPY_FROM: i32 = 8 * 1024;

/// Pages in the log from which on the writer copies the rest by itself: 128 MB.
const FORCE_FROM: i32 = 32 * 1024;

/// Pages in the log from which on they are copied when the last time is some seconds ago: 2 MB. Where little is written
/// the log stays short, also on a small disk.
const COPY_SOME_FROM: i32 = 512;
const COPY_SOME_AFTER: Span = Span::from_secs(5);

/// Pages that have come since the last time, before it is tried again. A reader may hold it up.
const STEP: i32 = 1024;

const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// The thread that copies.
pub(super) struct Checkpointer {
    clock: Clock,
    wish: Arc<Wish>,
    thread: Option<JoinHandle<()>>,
    /// How long the log was when something was last done about it.
    last: i32,
    /// When that was.
    last_time: Instant,
}

/// How long the log is, by the writer's last commit.
#[derive(Debug, Clone, Default)]
pub(super) struct LogLength(Arc<AtomicI32>);

#[derive(Debug, Default)]
struct Wish {
    state: Mutex<WishState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WishState {
    is_wanted: bool,
    is_over: bool,
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
    /// Starts the thread. Without one the writer copies by itself.
    pub(super) fn start(path: PathBuf, options: Options) -> Self {
        let wish = Arc::new(Wish::default());
        let clock = Arc::clone(&options.clock);
        let theirs = Arc::clone(&wish);
        let work = move || {
            let mut connection = None;
            while theirs.wait() {
                // When it fails the log is longer next time, and it is tried again.
                let opened = connection.take().map_or_else(|| open_again(&path, &options), Ok);
                connection = opened.ok().filter(|connection: &Connection| copy(connection).is_ok());
            }
        };
        let thread = std::thread::Builder::new().name("sqlite copier".to_owned()).spawn(work).ok();
        Self { wish, thread, last: 0, last_time: clock(), clock }
    }

    /// Sees to the log after a commit.
    pub(super) fn tend(&mut self, length: &LogLength, writer: &Connection) {
        let pages = length.0.load(Ordering::Relaxed);
        if pages < self.last {
            // It has begun anew.
            self.last = 0;
        }
        let is_long = pages >= COPY_FROM && pages >= self.last + STEP;
        let now = (self.clock)();
        // A clock that was set back is no reason to wait longer.
        let is_time = now < self.last_time || now.since(self.last_time) >= COPY_SOME_AFTER;
        let is_old = pages >= COPY_SOME_FROM && pages > self.last && is_time;
        if !is_long && !is_old {
            return;
        }
        self.last = pages;
        self.last_time = now;
        if pages >= FORCE_FROM || self.thread.is_none() {
            // When it fails the log is longer next time, and it is tried again.
            let _ = copy(writer);
        } else {
            self.wish.lock().is_wanted = true;
            self.wish.changed.notify_one();
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.wish.lock().is_over = true;
        self.wish.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to say.
            let _ = thread.join();
        }
    }
}

impl Wish {
    /// Waits until it is wanted, or over.
    fn wait(&self) -> bool {
        let is_idle = |state: &mut WishState| !state.is_wanted && !state.is_over;
        let mut state = self.changed.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        state.is_wanted = false;
        !state.is_over
    }

    fn lock(&self) -> MutexGuard<'_, WishState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies what nobody reads from the log any longer, without waiting for anyone.
fn copy(connection: &Connection) -> rusqlite::Result<()> {
    let copied = connection.prepare_cached(PASSIVE)?.query_row([], |_| Ok(()));
    copied.inspect_err(|error| tracing::debug!(event = "sqlite_checkpoint_failed", "{error}"))
}
