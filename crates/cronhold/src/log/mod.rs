//! The log of the daemon: `tracing` events of all crates, as lines of text or JSON on standard error.
//!
//! A node never waits for a slow reader of its log. A thread of its own writes the lines, and lines that do not fit
//! into its queue are counted and dropped. A log that cannot be written does not stop the daemon.
//!
//! Each event has a stable name in its field `event`; docs/guide/logs.md lists them. `core` and `engine` do not log:
//! the node reports its events to [`Log`], and `engine_events.rs` maps them to `tracing`.

mod engine_events;
mod format;
mod options;
mod program_events;
mod store_state;
mod subscriber;
mod writer;

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard};

use cronhold_engine::queue::BoundedQueue;
use cronhold_engine::{EngineEvent, EngineObserver};
use cronhold_store::lock_mutex;
use tracing::{Dispatch, dispatcher};

pub use options::{LogOptions, VARIABLE};
pub(crate) use program_events::program_event_observer;
use store_state::{StoreNotice, StoreState};
use subscriber::LogSubscriber;
use writer::{DirectWriter, LogWriter};

/// Severity of a message that is logged with [`Log::emit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Logged as `debug`.
    Detail,
    /// Logged as `info`.
    Usual,
    /// Logged as `warn`.
    Trouble,
}

/// The log of one daemon. Clones write to the same place.
#[derive(Debug, Clone)]
pub struct Log(Arc<LogState>);

#[derive(Debug)]
struct LogState {
    /// The arguments that make another process log the same.
    args: Vec<String>,
    dispatch: Dispatch,
    writer: LogWriter,
    /// What was last logged about the store.
    store_state: Mutex<StoreState>,
    /// Filled when the node has recovered.
    ready: BoundedQueue<()>,
}

impl Log {
    /// Starts the thread that writes to `to`.
    pub fn new(options: LogOptions, to: impl Write + Send + 'static) -> Self {
        let args = options.to_args();
        let writer = LogWriter::start(options.line_format(), to);
        let dispatch = Dispatch::new(LogSubscriber::new(options, writer.clone()));
        Self(Arc::new(LogState { args, dispatch, writer, store_state: Mutex::default(), ready: BoundedQueue::new(1) }))
    }

    /// Makes this the log of the whole process, so that it receives the events of all threads and crates. Has no effect
    /// if the process has one already.
    pub fn install(&self) {
        let _ = dispatcher::set_global_default(self.0.dispatch.clone());
    }

    /// Logs the `tracing` events of the closure here, whether or not this is the log of the process.
    pub fn scope<T>(&self, log: impl FnOnce() -> T) -> T {
        dispatcher::with_default(&self.0.dispatch, log)
    }

    /// Logs a message under the name of an event, for callers that choose the severity at run time.
    pub fn emit(&self, weight: Weight, event: &str, message: impl AsRef<str>) {
        let message = message.as_ref();
        self.scope(|| match weight {
            Weight::Detail => tracing::debug!(event, "{message}"),
            Weight::Usual => tracing::info!(event, "{message}"),
            Weight::Trouble => tracing::warn!(event, "{message}"),
        });
    }

    /// Notes a commit that the node does not report, which shows that the store accepts writes again.
    pub(crate) fn commits(&self) {
        let notice = self.store_state().on_commit();
        self.scope(|| notice.iter().for_each(StoreNotice::log));
    }

    fn store_state(&self) -> MutexGuard<'_, StoreState> {
        lock_mutex(&self.0.store_state)
    }

    /// The arguments of `cronhold keeper` that make a keeper log as this process does.
    pub fn to_args(&self) -> Vec<String> {
        self.0.args.clone()
    }

    /// Waits until the node has recovered its state from the store.
    pub async fn ready(&self) {
        self.0.ready.ready().await;
    }

    /// Waits until all lines are written, for a bounded time. Later events are dropped.
    pub fn end(&self) {
        self.0.writer.close();
    }
}

impl EngineObserver for Log {
    fn on_event(&self, news: &EngineEvent<'_>) {
        let notice = self.store_state().on_event(news);
        self.scope(|| {
            notice.iter().for_each(StoreNotice::log);
            engine_events::log(news);
        });
        if let EngineEvent::Ready { .. } = news {
            // The node reports it again after the store was unavailable.
            let _ = self.0.ready.try_send(());
        }
    }
}

/// Installs a log that writes each line at once, for a process that is not a daemon, such as the keeper.
pub fn install_unbuffered(options: LogOptions, to: impl Write + Send + 'static) {
    let writer = DirectWriter::new(to);
    let _ = dispatcher::set_global_default(Dispatch::new(LogSubscriber::new(options, writer)));
}

#[cfg(test)]
mod tests;
