//! Connections to Redis: sends commands, calls scripts, subscribes to channels, and reconnects by itself. Callers do
//! not know whether there is a single server, a Sentinel set or a Cluster.

mod connect_error;
mod connection;
mod discovery;
mod script;
mod subscription;
#[cfg(all(test, feature = "testing"))]
mod tests;
mod transport;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use cronhold_store::Fault;
use redis::{Cmd, ServerError, Value};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

pub(crate) use script::Script;
pub(crate) use subscription::ChannelEvent;

use crate::faults;
use crate::url::{RedisUrl, Topology};
use connection::Connection;

/// Pause between two attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// A caller waits this much longer than one attempt can take, so that it receives the error of that attempt.
const CONNECT_GRACE: Duration = Duration::from_millis(100);

/// How often the Sentinels are asked whether the server is still the master.
const SENTINEL_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The connection is closed after this many Sentinel checks in a row without a reply.
const SENTINEL_FAILURES_MAX: usize = 3;

/// Keeps one connection to the server that accepts writes, and replaces it when it breaks. Connects on first use, on
/// the store's runtime. Clones share the connection.
#[derive(Clone)]
pub(crate) struct RedisConnections(Arc<ConnectionsInner>);

struct ConnectionsInner {
    url: RedisUrl,
    runtime: Handle,
    state: watch::Sender<ConnectionState>,
    attempts: AtomicUsize,
    /// Whether a writer has enrolled. From then on a rejected login is not a mistake in the URL.
    has_enrolled: Arc<AtomicBool>,
    /// Whether a connection was ever open. Then both sides agree on TLS.
    has_replied: AtomicBool,
}

#[derive(Clone)]
enum ConnectionState {
    /// Nothing was requested yet.
    Unused,
    Connecting,
    Open(Arc<Connection>),
    /// The last attempt failed, at this time.
    Failed(Fault, Instant),
}

/// Replies to a batch of script calls.
pub(crate) struct CallReplies {
    /// One reply for each call.
    pub(crate) replies: Vec<Result<Value, Fault>>,
    /// One reply for each command that was sent after the calls; empty if the connection broke.
    pub(crate) trailing: Vec<Value>,
}

impl RedisConnections {
    /// Does not connect before the first request.
    pub(crate) fn new(url: &RedisUrl, runtime: Handle) -> Self {
        let (state, _) = watch::channel(ConnectionState::Unused);
        Self(Arc::new(ConnectionsInner {
            url: url.clone(),
            runtime,
            state,
            attempts: AtomicUsize::new(0),
            has_enrolled: Arc::default(),
            has_replied: AtomicBool::new(false),
        }))
    }

    /// A second connection to the same server, for requests that must not delay those on the first one.
    pub(crate) fn separate(&self) -> Self {
        let (state, _) = watch::channel(ConnectionState::Unused);
        Self(Arc::new(ConnectionsInner {
            url: self.0.url.clone(),
            runtime: self.0.runtime.clone(),
            state,
            attempts: AtomicUsize::new(0),
            has_enrolled: Arc::clone(&self.0.has_enrolled),
            has_replied: AtomicBool::new(false),
        }))
    }

    /// Sends commands as one pipeline and returns one value each; errors of single commands are among the values.
    /// `Fault::Unavailable` means that nothing was sent, `Fault::OutcomeUnknown` that the commands were sent and no reply arrived.
    pub(crate) async fn request(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, Fault> {
        self.connection().await?.request(commands).await
    }

    /// Sends one command. An error reply becomes a fault.
    pub(crate) async fn request_one(&self, command: Cmd) -> Result<Value, Fault> {
        let mut replies = self.request(vec![command]).await?;
        self.check_reply(replies.pop().unwrap_or(Value::Nil))
    }

    /// Calls a script by its hash, and loads it first if the server does not have it.
    pub(crate) async fn call_script(
        &self,
        script: &'static Script,
        keys: &[String],
        args: Vec<Vec<u8>>,
    ) -> Result<Value, Fault> {
        let mut called = self.call_script_batch(script, keys, vec![args], Vec::new()).await;
        called.replies.pop().expect("each call has a reply")
    }

    /// Calls a script several times in this order, in one pipeline, and sends `trailing` commands after the calls.
    pub(crate) async fn call_script_batch(
        &self,
        script: &'static Script,
        keys: &[String],
        calls: Vec<Vec<Vec<u8>>>,
        trailing: Vec<Cmd>,
    ) -> CallReplies {
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(fault) => return CallReplies::failed(calls.len(), &fault),
        };
        let loads = !connection.has_script(script);
        tracing::trace!(
            event = "redis_batch",
            calls = calls.len(),
            trailing = trailing.len(),
            "sending a batch of calls"
        );
        let mut commands = Vec::with_capacity(calls.len() + trailing.len() + 1);
        commands.extend(loads.then(|| script.load()));
        commands.extend(calls.iter().map(|args| script.call(keys, args, &connection.server_id)));
        commands.extend(trailing);
        let mut replies = match connection.request(commands).await {
            Ok(replies) => replies,
            Err(fault) => return CallReplies::failed(calls.len(), &fault),
        };
        if loads && !matches!(replies.remove(0), Value::ServerError(_)) {
            connection.mark_script_loaded(script);
        }
        let trailing = replies.split_off(calls.len());
        let missing: Vec<usize> = (0..replies.len()).filter(|index| is_unknown_script(&replies[*index])).collect();
        let mut replies: Vec<_> = replies.into_iter().map(|reply| self.check_reply(reply)).collect();
        // The server's script cache was flushed. The calls that found no script are repeated once.
        if !missing.is_empty() {
            let mut commands = vec![script.load()];
            commands.extend(missing.iter().map(|index| script.call(keys, &calls[*index], &connection.server_id)));
            let repeated = connection.request(commands).await;
            for (position, index) in missing.into_iter().enumerate() {
                replies[index] = match &repeated {
                    Ok(repeated) => self.check_reply(repeated[position + 1].clone()),
                    Err(fault) => Err(fault.clone()),
                };
            }
        }
        CallReplies { replies, trailing }
    }

    /// Messages of channels, until the receiver is dropped.
    pub(crate) fn subscribe(&self, channels: Vec<String>) -> mpsc::Receiver<ChannelEvent> {
        subscription::start(self.0.url.clone(), &self.0.runtime, channels)
    }

    /// The fault for an error that the server replied with.
    pub(crate) fn fault_of(&self, error: &ServerError) -> Fault {
        let fault = faults::of_reply(&self.server_name(), error);
        if faults::is_about_permissions(error) { self.0.relax(fault) } else { fault }
    }

    /// A writer has enrolled. From now on a server that rejects the login counts as unavailable: operators change
    /// passwords and permissions while nodes run, and correct them again.
    pub(crate) fn mark_enrolled(&self) {
        self.0.has_enrolled.store(true, Ordering::Relaxed);
    }

    /// The reply, or the fault if it is an error.
    pub(crate) fn check_reply(&self, reply: Value) -> Result<Value, Fault> {
        match reply {
            Value::ServerError(error) => Err(self.fault_of(&error)),
            reply => Ok(reply),
        }
    }

    /// The address of the current server, or of the first in the URL, for messages.
    pub(crate) fn server_name(&self) -> String {
        match &*self.0.state.borrow() {
            ConnectionState::Open(connection) => connection.server.to_string(),
            _ => self.0.url.servers.first().map(ToString::to_string).unwrap_or_default(),
        }
    }

    /// Why the last attempt to connect failed; `None` while connected, connecting or unused.
    pub(crate) fn failure(&self) -> Option<String> {
        match &*self.0.state.borrow() {
            ConnectionState::Failed(fault, _) => Some(fault.to_string()),
            _ => None,
        }
    }

    /// The open connection, or a new one.
    async fn connection(&self) -> Result<Arc<Connection>, Fault> {
        if let ConnectionState::Open(connection) = &*self.0.state.borrow()
            && !connection.is_closed()
        {
            return Ok(connection.clone());
        }
        let mut states = self.0.state.subscribe();
        self.reconnect();
        let settled = states.wait_for(|state| !matches!(state, ConnectionState::Unused | ConnectionState::Connecting));
        match timeout(self.0.url.settings.timeout + CONNECT_GRACE, settled).await {
            Ok(Ok(state)) => match &*state {
                ConnectionState::Open(connection) => Ok(connection.clone()),
                ConnectionState::Failed(fault, _) => Err(fault.clone()),
                ConnectionState::Unused | ConnectionState::Connecting => unreachable!("excluded by the condition"),
            },
            Ok(Err(_)) => Err(faults::unreachable(&self.server_name(), "the store was closed")),
            Err(_) => Err(faults::unreachable(&self.server_name(), "still connecting")),
        }
    }

    /// Starts to connect, unless that is under way. The attempt continues when the caller is gone.
    fn reconnect(&self) {
        let mut not_before = None;
        let starts = self.0.state.send_if_modified(|state| {
            not_before = match state {
                ConnectionState::Connecting => return false,
                ConnectionState::Open(connection) if !connection.is_closed() => return false,
                ConnectionState::Unused => None,
                ConnectionState::Open(connection) => Some(connection.opened_at + RECONNECT_PAUSE),
                ConnectionState::Failed(_, at) => Some(*at + RECONNECT_PAUSE),
            };
            *state = ConnectionState::Connecting;
            true
        });
        if !starts {
            return;
        }
        let inner = self.0.clone();
        self.0.runtime.spawn(async move {
            if let Some(not_before) = not_before {
                sleep_until(not_before).await;
            }
            let attempt = inner.attempts.fetch_add(1, Ordering::Relaxed);
            let state = match discovery::connect(&inner.url, attempt).await {
                Ok(connection) => {
                    inner.has_replied.store(true, Ordering::Relaxed);
                    let server = &connection.server;
                    tracing::info!(event = "redis_connected", server = %server, attempt, "connected to {server}");
                    let connection = Arc::new(connection);
                    if matches!(inner.url.topology, Topology::Sentinel { .. }) {
                        tokio::spawn(watch_master(inner.url.clone(), Arc::downgrade(&connection)));
                    }
                    ConnectionState::Open(connection)
                }
                Err(error) => {
                    let fault = error.into_fault(inner.has_replied.load(Ordering::Relaxed));
                    tracing::debug!(event = "redis_connect_failed", attempt, "{fault}");
                    ConnectionState::Failed(inner.relax(fault), Instant::now())
                }
            };
            inner.state.send_replace(state);
        });
    }
}

impl ConnectionsInner {
    /// A rejected login ends a process that is just starting. For one that has enrolled it is transient.
    fn relax(&self, fault: Fault) -> Fault {
        if self.has_enrolled.load(Ordering::Relaxed) { faults::as_transient(fault) } else { fault }
    }
}

impl std::fmt::Debug for RedisConnections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisConnections").field("url", &self.0.url).finish_non_exhaustive()
    }
}

impl CallReplies {
    fn failed(calls: usize, fault: &Fault) -> Self {
        Self { replies: vec![Err(fault.clone()); calls], trailing: Vec::new() }
    }
}

/// Closes the connection when the Sentinels name another master, or when none of them replies for a while: a master
/// that is partitioned from them may still accept writes, and those writes would be lost.
async fn watch_master(url: RedisUrl, connection: Weak<Connection>) {
    let mut failures = 0;
    for attempt in 0.. {
        sleep(SENTINEL_CHECK_INTERVAL).await;
        let Some(connection) = connection.upgrade().filter(|connection| !connection.is_closed()) else { return };
        match discovery::locate(&url, attempt).await {
            Ok(server) if server == connection.server => failures = 0,
            Err(_) if failures + 1 < SENTINEL_FAILURES_MAX => failures += 1,
            _ => {
                let server = &connection.server;
                tracing::warn!(event = "redis_failover", server = %server, "closing the connection to {server}: it is not the master any more");
                connection.close();
            }
        }
    }
}

fn is_unknown_script(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if faults::is_unknown_script(error))
}
