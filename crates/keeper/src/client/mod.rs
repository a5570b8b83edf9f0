//! The daemon's side of the connection to its keeper: a thread that connects, starts a keeper if there is none, and
//! transfers messages in both directions. It has no queue: it takes a message from its [`KeeperDelegate`] whenever the
//! buffer has space, and after a lost connection the delegate decides what to send again.

mod connect;
mod connection;
mod error;
mod evidence;
mod liveness;
#[cfg(test)]
mod tests;
mod wakeup;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub use error::{ConnectionError, LastLogLine};
pub use evidence::runs_in_journal;
pub use wakeup::Wakeup;

use self::connect::Connector;
use self::connection::KeeperConnection;
use self::liveness::Liveness;
use crate::fail;
use crate::protocol::{FromKeeper, ToKeeper};

/// The first and the longest wait before a keeper that could not be reached is tried again.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// After a connection that lasted this long, the wait starts at [`RETRY_MIN`] again.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// What the client needs to know.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The daemon's data directory, as an absolute path.
    pub data: PathBuf,
    /// The program that becomes a keeper when it is called as `PROGRAM keeper --data DIR`.
    pub program: PathBuf,
    /// The daemon's version, for messages.
    pub version: String,
    /// Further arguments with which a keeper is started, so that it logs as the daemon does.
    pub log_args: Vec<String>,
    /// The environment of a keeper. It gets nothing else of the daemon's.
    pub env: Vec<(String, String)>,
}

/// Supplies messages for the keeper and handles its messages. The client's thread calls the methods one at a time; they
/// must not block for long.
pub trait KeeperDelegate: Send + Sync {
    /// The next message to send; `None` if there is none now.
    fn next_message(&self) -> Option<ToKeeper>;

    /// Handles an event.
    fn on_event(&self, event: KeeperEvent);
}

/// What happens on the connection.
#[derive(Debug)]
pub enum KeeperEvent {
    /// There is a connection. The keeper's list follows.
    Connected {
        /// The keeper's version.
        version: String,
        /// The keeper's process.
        pid: u32,
        /// What the keeper cannot do on this machine, as messages.
        warnings: Vec<String>,
    },
    /// The keeper sent a message.
    Received(FromKeeper),
    /// The keeper has not answered a ping for some seconds. The connection stays; the next message ends the silence.
    Silent {
        /// The keeper's process.
        pid: u32,
    },
    /// The connection ended, or there is none.
    Disconnected(ConnectionError),
}

/// The connection to the keeper. Dropping it ends the connection; programs continue.
#[derive(Debug)]
pub struct KeeperClient {
    wakeup: Wakeup,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl KeeperClient {
    /// Starts the thread. The delegate notifies `wakeup` when it has a new message.
    pub fn start(options: ClientOptions, wakeup: &Wakeup, delegate: Arc<dyn KeeperDelegate>) -> io::Result<Self> {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let client = ClientLoop {
            connector: Connector::new(options),
            wakeup: wakeup.clone(),
            is_stopping: Arc::clone(&is_stopping),
            delegate,
        };
        let thread = std::thread::Builder::new().name("keeper client".to_owned()).spawn(move || client.run())?;
        Ok(Self { wakeup: wakeup.clone(), is_stopping, thread: Some(thread) })
    }
}

impl Drop for KeeperClient {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.wakeup.notify();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked is over as well.
            let _ = thread.join();
        }
    }
}

/// What runs in the client's thread.
struct ClientLoop {
    connector: Connector,
    wakeup: Wakeup,
    is_stopping: Arc<AtomicBool>,
    delegate: Arc<dyn KeeperDelegate>,
}

impl ClientLoop {
    fn run(mut self) {
        let mut wait = RETRY_MIN;
        while !self.is_stopping() {
            let before = wakeup::clock();
            let result = self.connector.connect(&self.wakeup, &self.is_stopping);
            let Err(error) = result.and_then(|connection| self.serve(connection)) else { return };
            if self.is_stopping() {
                return;
            }
            self.delegate.on_event(KeeperEvent::Disconnected(error));
            wait = if wakeup::clock().saturating_sub(before) >= STABLE_AFTER { RETRY_MIN } else { wait };
            self.wakeup.rest(wait, &self.is_stopping);
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    /// Carries messages until the connection breaks, or until the client is dropped.
    fn serve(&self, mut connection: KeeperConnection) -> Result<(), ConnectionError> {
        let Some(hello) = connection.receive_hello(&self.wakeup, &self.is_stopping)? else { return Ok(()) };
        let (pid, mut liveness) = (hello.pid, Liveness::new(hello.understands_pings(), wakeup::awake_clock()));
        self.delegate.on_event(KeeperEvent::Connected { version: hello.version, pid, warnings: hello.warnings });
        while !self.is_stopping() {
            if liveness.take_ping(wakeup::awake_clock()) {
                connection.put(&ToKeeper::Ping).map_err(ConnectionError::Send)?;
            }
            let mut has_launch = false;
            while connection.has_room()
                && let Some(message) = self.delegate.next_message()
            {
                has_launch |= matches!(message, ToKeeper::Launch(_));
                connection.put(&message).map_err(ConnectionError::Send)?;
            }
            connection.send()?;
            if has_launch {
                fail::point("daemon-after-launch");
            }
            let messages = connection.receive(&self.wakeup, liveness.wait(wakeup::awake_clock()))?;
            if !messages.is_empty() {
                liveness.record_message();
            } else if liveness.take_silence(wakeup::awake_clock()) {
                self.delegate.on_event(KeeperEvent::Silent { pid });
            }
            messages.into_iter().for_each(|message| self.delegate.on_event(KeeperEvent::Received(message)));
        }
        Ok(())
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}
