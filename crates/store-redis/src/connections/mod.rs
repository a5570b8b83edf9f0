//! Connections to Redis: sends commands, calls scripts, subscribes to channels, and reconnects by itself. Callers do
//! not know whether there is a single server, a Sentinel set or a Cluster.

mod connection;
mod discovery;
mod opener;
mod script;
mod subscription;
#[cfg(all(test, feature = "testing"))]
mod tests;
mod transport;

use cronhold_store::Fault;
use cronhold_store_remote::ReconnectingConnection;
use redis::{Cmd, ServerError, Value};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

pub(crate) use script::Script;
pub(crate) use subscription::ChannelEvent;

use crate::faults;
use crate::url::RedisUrl;
use opener::RedisOpener;

/// One connection to the server that accepts writes, with what can be sent over it. Clones share the connection.
#[derive(Debug, Clone)]
pub(crate) struct RedisConnections(ReconnectingConnection<RedisOpener>);

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
        Self(ReconnectingConnection::new(RedisOpener::new(url), runtime))
    }

    /// A second connection to the same server, for requests that must not delay those on the first one.
    pub(crate) fn separate(&self) -> Self {
        Self(self.0.separate())
    }

    /// Sends commands as one pipeline and returns one value each; errors of single commands are among the values.
    /// `Fault::Unavailable` means that nothing was sent, `Fault::OutcomeUnknown` that the commands were sent and no reply arrived.
    pub(crate) async fn request(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, Fault> {
        self.0.get().await?.request(commands).await
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
        let connection = match self.0.get().await {
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
        let channels = subscription::SubscribedChannels::Named(channels);
        subscription::start(self.0.opener().url().clone(), self.0.runtime(), channels)
    }

    /// Messages of all channels that match a pattern, until the receiver is dropped.
    pub(crate) fn subscribe_pattern(&self, pattern: String) -> mpsc::Receiver<ChannelEvent> {
        let channels = subscription::SubscribedChannels::Pattern(pattern);
        subscription::start(self.0.opener().url().clone(), self.0.runtime(), channels)
    }

    /// The fault for an error that the server replied with.
    pub(crate) fn fault_of(&self, error: &ServerError) -> Fault {
        let fault = faults::of_reply(&self.server_name(), error);
        if faults::is_about_permissions(error) { self.0.judge_rejection(fault) } else { fault }
    }

    /// A writer has enrolled. From now on a server that rejects the login counts as unavailable.
    pub(crate) fn mark_enrolled(&self) {
        self.0.mark_enrolled();
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
        self.0.server_name()
    }

    /// Why the last attempt to connect failed; `None` while connected, connecting or unused.
    pub(crate) fn failure(&self) -> Option<String> {
        self.0.failure()
    }
}

impl CallReplies {
    fn failed(calls: usize, fault: &Fault) -> Self {
        Self { replies: vec![Err(fault.clone()); calls], trailing: Vec::new() }
    }
}

fn is_unknown_script(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if faults::is_unknown_script(error))
}
