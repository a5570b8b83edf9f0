//! Keeps one connection to a store open: connects on first use, and replaces the connection when it has failed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cronhold_store::Fault;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::{ConnectError, faults};

/// Pause between two attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// A caller waits this much longer than one attempt can take, so that it receives the error of that attempt.
const CONNECT_GRACE: Duration = Duration::from_millis(100);

/// Opens connections to the servers of one URL.
pub trait ConnectionOpener: Send + Sync + 'static {
    /// A connection to one server. It never recovers from a failure.
    type Connection: Send + Sync + 'static;

    /// Opens a connection, within [`Self::timeout`]. `attempt` counts all attempts; an opener with several servers
    /// begins with another one each time.
    fn open(&self, attempt: usize) -> impl Future<Output = Result<Self::Connection, ConnectError>> + Send;

    /// The longest time that an attempt takes.
    fn timeout(&self) -> Duration;

    /// Whether a connection is known to be unusable.
    fn is_closed(&self, connection: &Self::Connection) -> bool;

    /// The server of a connection, for messages; without a connection, the first server that is tried.
    fn server_name(&self, connection: Option<&Self::Connection>) -> String;

    /// Called with each new connection, on the runtime, before it is used.
    fn on_connected(&self, connection: &Arc<Self::Connection>, attempt: usize);

    /// Called after each failed attempt.
    fn on_failure(&self, fault: &Fault, attempt: usize);
}

/// One connection, which is opened on first use, on the store's runtime, and replaced when it breaks. Clones share it.
pub struct ReconnectingConnection<O: ConnectionOpener>(Arc<ConnectionSlot<O>>);

struct ConnectionSlot<O: ConnectionOpener> {
    opener: Arc<O>,
    runtime: Handle,
    state: watch::Sender<ConnectionState<O::Connection>>,
    attempts: AtomicUsize,
    /// Whether a writer has enrolled. From then on a rejected login is not a mistake in the URL.
    has_enrolled: Arc<AtomicBool>,
    /// Whether a connection was ever open. Then both sides agree on TLS.
    has_replied: AtomicBool,
}

enum ConnectionState<C> {
    /// Nothing was requested yet.
    Unused,
    Connecting,
    /// Open since this time.
    Open(Arc<C>, Instant),
    /// The last attempt failed, at this time.
    Failed(Fault, Instant),
}

impl<O: ConnectionOpener> ReconnectingConnection<O> {
    /// Does not connect before the first request.
    pub fn new(opener: O, runtime: Handle) -> Self {
        Self::with(Arc::new(opener), runtime, Arc::default())
    }

    /// A second connection to the same servers, for requests that must not delay those on the first one.
    #[must_use]
    pub fn separate(&self) -> Self {
        let ConnectionSlot { opener, runtime, has_enrolled, .. } = &*self.0;
        Self::with(Arc::clone(opener), runtime.clone(), Arc::clone(has_enrolled))
    }

    fn with(opener: Arc<O>, runtime: Handle, has_enrolled: Arc<AtomicBool>) -> Self {
        let (state, _) = watch::channel(ConnectionState::Unused);
        let (attempts, has_replied) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self(Arc::new(ConnectionSlot { opener, runtime, state, attempts, has_enrolled, has_replied }))
    }

    pub fn opener(&self) -> &O {
        &self.0.opener
    }

    pub fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// The open connection, or a new one. `Fault::Unavailable` means that there is none, so that nothing was sent.
    pub async fn get(&self) -> Result<Arc<O::Connection>, Fault> {
        if let ConnectionState::Open(connection, _) = &*self.0.state.borrow()
            && !self.opener().is_closed(connection)
        {
            return Ok(Arc::clone(connection));
        }
        let mut states = self.0.state.subscribe();
        self.reconnect();
        let is_settled = |state: &ConnectionState<O::Connection>| {
            matches!(state, ConnectionState::Open(..) | ConnectionState::Failed(..))
        };
        match timeout(self.opener().timeout() + CONNECT_GRACE, states.wait_for(is_settled)).await {
            Ok(Ok(state)) => match &*state {
                ConnectionState::Open(connection, _) => Ok(Arc::clone(connection)),
                ConnectionState::Failed(fault, _) => Err(fault.clone()),
                ConnectionState::Unused | ConnectionState::Connecting => unreachable!("excluded by the condition"),
            },
            Ok(Err(_)) => Err(faults::unreachable(self.server_name(), "the store was closed")),
            Err(_) => Err(faults::unreachable(self.server_name(), "still connecting")),
        }
    }

    /// A writer has enrolled. From now on a server that rejects the login counts as unavailable: operators change
    /// passwords and permissions while nodes run, and correct them again.
    pub fn mark_enrolled(&self) {
        self.0.has_enrolled.store(true, Ordering::Relaxed);
    }

    /// The fault for a login or a request that the server rejects. It ends a process that is just starting; for one that
    /// has enrolled it is transient.
    pub fn judge_rejection(&self, fault: Fault) -> Fault {
        self.0.judge_rejection(fault)
    }

    /// The address of the current server, or of the first in the URL, for messages.
    pub fn server_name(&self) -> String {
        match &*self.0.state.borrow() {
            ConnectionState::Open(connection, _) => self.opener().server_name(Some(connection)),
            _ => self.opener().server_name(None),
        }
    }

    /// Why the last attempt to connect failed; `None` while connected, connecting or unused.
    pub fn failure(&self) -> Option<String> {
        match &*self.0.state.borrow() {
            ConnectionState::Failed(fault, _) => Some(fault.to_string()),
            _ => None,
        }
    }

    /// Starts to connect, unless that is under way. The attempt continues when the caller is gone.
    fn reconnect(&self) {
        let mut not_before = None;
        let starts = self.0.state.send_if_modified(|state| {
            not_before = match state {
                ConnectionState::Connecting => return false,
                ConnectionState::Open(connection, _) if !self.opener().is_closed(connection) => return false,
                ConnectionState::Unused => None,
                ConnectionState::Open(_, at) | ConnectionState::Failed(_, at) => Some(*at + RECONNECT_PAUSE),
            };
            *state = ConnectionState::Connecting;
            true
        });
        if !starts {
            return;
        }
        let slot = Arc::clone(&self.0);
        self.0.runtime.spawn(async move {
            if let Some(not_before) = not_before {
                sleep_until(not_before).await;
            }
            slot.connect().await;
        });
    }
}

impl<O: ConnectionOpener> ConnectionSlot<O> {
    /// Makes one attempt.
    async fn connect(&self) {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let state = match self.opener.open(attempt).await {
            Ok(connection) => {
                self.has_replied.store(true, Ordering::Relaxed);
                let connection = Arc::new(connection);
                self.opener.on_connected(&connection, attempt);
                ConnectionState::Open(connection, Instant::now())
            }
            Err(error) => {
                let fault = error.into_fault(self.has_replied.load(Ordering::Relaxed));
                self.opener.on_failure(&fault, attempt);
                ConnectionState::Failed(self.judge_rejection(fault), Instant::now())
            }
        };
        self.state.send_replace(state);
    }

    fn judge_rejection(&self, fault: Fault) -> Fault {
        if self.has_enrolled.load(Ordering::Relaxed) { faults::as_transient(fault) } else { fault }
    }
}

impl<O: ConnectionOpener> Clone for ReconnectingConnection<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O: ConnectionOpener> fmt::Debug for ReconnectingConnection<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconnectingConnection").field("server", &self.server_name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use cronhold_store::lock_mutex;

    use super::*;

    /// An opener whose attempts succeed or fail as planned. Connections are numbered by their attempt.
    struct PlannedOpener {
        /// The error of each attempt; attempts beyond the list succeed.
        plan: Vec<Option<Fault>>,
        closed: AtomicUsize,
        log: Mutex<Vec<String>>,
    }

    impl PlannedOpener {
        fn new(plan: Vec<Option<Fault>>) -> Self {
            Self { plan, closed: AtomicUsize::new(usize::MAX), log: Mutex::default() }
        }
    }

    impl ConnectionOpener for PlannedOpener {
        type Connection = usize;

        async fn open(&self, attempt: usize) -> Result<usize, ConnectError> {
            match self.plan.get(attempt).cloned().flatten() {
                Some(fault) => Err(ConnectError::from(fault).with_hint("use TLS")),
                None => Ok(attempt),
            }
        }

        fn timeout(&self) -> Duration {
            Duration::from_secs(60)
        }

        fn is_closed(&self, connection: &usize) -> bool {
            self.closed.load(Ordering::Relaxed) == *connection
        }

        fn server_name(&self, connection: Option<&usize>) -> String {
            connection.map_or_else(|| "first".to_owned(), |number| format!("server {number}"))
        }

        fn on_connected(&self, connection: &Arc<usize>, _attempt: usize) {
            lock_mutex(&self.log).push(format!("connected {connection}"));
        }

        fn on_failure(&self, _fault: &Fault, attempt: usize) {
            lock_mutex(&self.log).push(format!("failed {attempt}"));
        }
    }

    fn unavailable(why: &str) -> Fault {
        Fault::Unavailable(why.to_owned())
    }

    #[tokio::test]
    async fn connection_is_opened_once_and_replaced_when_it_is_closed() {
        let connection = ReconnectingConnection::new(PlannedOpener::new(Vec::new()), Handle::current());
        assert_eq!((connection.server_name(), connection.failure()), ("first".to_owned(), None));
        let (one, other) = tokio::join!(connection.get(), connection.get());
        assert_eq!((one.map(|number| *number), other.map(|number| *number)), (Ok(0), Ok(0)));
        assert_eq!(connection.server_name(), "server 0");
        connection.opener().closed.store(0, Ordering::Relaxed);
        assert_eq!(connection.get().await.map(|number| *number), Ok(1));
        assert_eq!(*lock_mutex(&connection.opener().log), ["connected 0", "connected 1"]);
        assert_eq!(connection.separate().get().await.map(|number| *number), Ok(0), "it counts its own attempts");
    }

    #[tokio::test]
    async fn failure_is_reported_until_the_next_attempt_succeeds() {
        let plan = vec![Some(unavailable("down")), None, Some(unavailable("down"))];
        let connection = ReconnectingConnection::new(PlannedOpener::new(plan), Handle::current());
        assert_eq!(connection.get().await, Err(unavailable("down; use TLS")));
        assert_eq!(connection.failure(), Some(unavailable("down; use TLS").to_string()));
        assert_eq!(connection.get().await.map(|number| *number), Ok(1));
        assert_eq!(connection.failure(), None);
        connection.opener().closed.store(1, Ordering::Relaxed);
        assert_eq!(connection.get().await, Err(unavailable("down")), "a server that has replied agrees on TLS");
        assert_eq!(*lock_mutex(&connection.opener().log), ["failed 0", "connected 1", "failed 2"]);
    }

    #[tokio::test]
    async fn rejected_login_is_permanent_only_before_a_writer_has_enrolled() {
        let refused = || Some(Fault::Permanent("wrong password".to_owned()));
        let plan = vec![refused(), refused()];
        let connection = ReconnectingConnection::new(PlannedOpener::new(plan), Handle::current());
        assert_eq!(connection.get().await.err(), refused());
        connection.separate().mark_enrolled();
        assert_eq!(connection.get().await, Err(unavailable("wrong password")));
    }
}
