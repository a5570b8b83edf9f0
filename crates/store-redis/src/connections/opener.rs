//! Opens connections to the server that accepts writes, and closes one whose server is not the master any more.

use std::sync::{Arc, Weak};
use std::time::Duration;

use cronhold_store::Fault;
use cronhold_store_remote::{ConnectError, ConnectionOpener};
use tokio::time::sleep;

use super::connection::Connection;
use super::discovery;
use crate::url::{RedisUrl, Topology};

/// How often the Sentinels are asked whether the server is still the master.
const SENTINEL_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The connection is closed after this many Sentinel checks in a row without a reply.
const SENTINEL_FAILURES_MAX: usize = 3;

/// Opens connections to the servers of a URL.
#[derive(Debug)]
pub(super) struct RedisOpener {
    url: RedisUrl,
}

impl RedisOpener {
    pub(super) fn new(url: &RedisUrl) -> Self {
        Self { url: url.clone() }
    }

    pub(super) fn url(&self) -> &RedisUrl {
        &self.url
    }
}

impl ConnectionOpener for RedisOpener {
    type Connection = Connection;

    async fn open(&self, attempt: usize) -> Result<Connection, ConnectError> {
        discovery::connect(&self.url, attempt).await
    }

    fn timeout(&self) -> Duration {
        self.url.settings.timeout
    }

    fn is_closed(&self, connection: &Connection) -> bool {
        connection.is_closed()
    }

    fn server_name(&self, connection: Option<&Connection>) -> String {
        let server = connection.map(|connection| &connection.server).or(self.url.servers.first());
        server.map(ToString::to_string).unwrap_or_default()
    }

    fn on_connected(&self, connection: &Arc<Connection>, attempt: usize) {
        let server = &connection.server;
        tracing::info!(event = "redis_connected", server = %server, attempt, "connected to {server}");
        if matches!(self.url.topology, Topology::Sentinel { .. }) {
            tokio::spawn(watch_master(self.url.clone(), Arc::downgrade(connection)));
        }
    }

    fn on_failure(&self, fault: &Fault, attempt: usize) {
        tracing::debug!(event = "redis_connect_failed", attempt, "{fault}");
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
