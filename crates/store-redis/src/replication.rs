//! Replicas of the server: after a write the client asks the server whether at least one replica has it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use redis::{Cmd, Value};

use crate::connections::RedisConnections;
use crate::outputs::command;
use crate::server_check;

/// How long a write waits for one replica.
const REPLICA_WAIT_MILLIS: u128 = 500;

/// The number of replicas, and whether the last write reached one.
#[derive(Debug)]
pub(crate) struct Replication {
    /// How long the server waits for a replica, in milliseconds.
    wait_millis: String,
    replicas: AtomicU64,
    is_unconfirmed: AtomicBool,
}

impl Replication {
    /// `timeout` limits requests to the server; its own wait must end well before.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            wait_millis: REPLICA_WAIT_MILLIS.min(timeout.as_millis() / 4).to_string(),
            replicas: AtomicU64::new(0),
            is_unconfirmed: AtomicBool::new(false),
        }
    }

    /// The `WAIT` command that is sent after a write; none if the server has no replicas.
    pub(crate) fn wait_command(&self) -> Vec<Cmd> {
        if self.has_replicas() { vec![command("WAIT", &["1", &self.wait_millis])] } else { Vec::new() }
    }

    /// Whether the server had replicas when they were counted.
    pub(crate) fn has_replicas(&self) -> bool {
        self.replicas.load(Ordering::Relaxed) > 0
    }

    /// Records the reply to [`Self::wait_command`].
    pub(crate) fn record_wait(&self, replies: &[Value]) {
        if let Some(Value::Int(count)) = replies.first() {
            if *count == 0 {
                // The replicas may be gone for good. Without this, every write would wait for them.
                self.set_count(0);
            }
            self.is_unconfirmed.store(*count == 0, Ordering::Relaxed);
        }
    }

    pub(crate) fn set_count(&self, replicas: u64) {
        self.replicas.store(replicas, Ordering::Relaxed);
    }

    /// Counts the replicas again. If the server does not reply, the last count stays.
    pub(crate) async fn recount(&self, connections: &RedisConnections) {
        if let Ok(replicas) = server_check::count_replicas(connections).await {
            self.set_count(replicas);
        }
    }

    pub(crate) fn warning(&self) -> Option<String> {
        let is_unconfirmed = self.is_unconfirmed.load(Ordering::Relaxed);
        is_unconfirmed.then(|| "no replica has the latest commits; they are lost if the server fails".to_owned())
    }
}
