//! Finds the server that accepts writes: the one in the URL, the master that the Sentinels name, or the Cluster node
//! that serves the hash slot of the namespace.

use cronhold_store_remote::ConnectError;
use cronhold_store_remote::faults::unreachable;
use cronhold_store_remote::url::ServerAddress;
use redis::Value;

use super::connection::{Connection, LoginKind};
use crate::faults;
use crate::url::{PORT, RedisUrl, Topology};

/// Connects to the server that accepts writes. `attempt` selects which of several servers is asked first, so that a
/// server with a wrong answer is not asked first every time.
pub(super) async fn connect(url: &RedisUrl, attempt: usize) -> Result<Connection, ConnectError> {
    let server = locate(url, attempt).await?;
    let connection = Connection::open(url, &server, LoginKind::DataServer).await?;
    if matches!(url.topology, Topology::Sentinel { .. }) {
        // During a failover a Sentinel may still name the old master.
        let role = connection.request(vec![redis::cmd("ROLE")]).await?;
        let is_master = matches!(role.first(), Some(Value::Array(parts)) if parts.first().and_then(text).as_deref() == Some("master"));
        if !is_master {
            return Err(unreachable(server, "this server is not the master").into());
        }
    }
    Ok(connection)
}

/// The address of the server that accepts writes.
pub(super) async fn locate(url: &RedisUrl, attempt: usize) -> Result<ServerAddress, ConnectError> {
    let mut last = ConnectError::from(unreachable("Redis", "the URL names no server"));
    for index in 0..url.servers.len() {
        let server = &url.servers[(attempt + index) % url.servers.len()];
        let located = match &url.topology {
            Topology::Single => return Ok(server.clone()),
            Topology::Sentinel { service, .. } => ask_sentinel(url, server, service).await,
            Topology::Cluster => ask_cluster(url, server).await,
        };
        match located {
            Ok(located) => return Ok(located),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn ask_sentinel(url: &RedisUrl, server: &ServerAddress, service: &str) -> Result<ServerAddress, ConnectError> {
    let connection = Connection::open(url, server, LoginKind::Sentinel).await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(service);
    let replies = connection.request(vec![command]).await?;
    let fail = |why: &str| Err(unreachable(server, why).into());
    match replies.into_iter().next() {
        Some(Value::Array(parts)) => match address(&parts, server) {
            Some(master) => Ok(master),
            None => fail("invalid master address in the reply of the Sentinel"),
        },
        Some(Value::ServerError(error)) => {
            fail(&format!("the Sentinel does not name a master ({})", faults::text(&error)))
        }
        _ => fail(&format!("the Sentinel does not monitor `{service}`")),
    }
}

async fn ask_cluster(url: &RedisUrl, server: &ServerAddress) -> Result<ServerAddress, ConnectError> {
    let connection = Connection::open(url, server, LoginKind::DataServer).await?;
    let mut slot = redis::cmd("CLUSTER");
    slot.arg("KEYSLOT").arg(&url.settings.namespace);
    let mut slots = redis::cmd("CLUSTER");
    slots.arg("SLOTS");
    let replies = connection.request(vec![slot, slots]).await?;
    let fail = |why: &str| Err(unreachable(server, why).into());
    match replies.as_slice() {
        [Value::Int(slot), Value::Array(ranges)] => {
            match ranges.iter().find_map(|range| master_of(range, *slot, server)) {
                Some(master) => Ok(master),
                None => fail(&format!("no node of the Cluster serves slot {slot} of this namespace")),
            }
        }
        replies => match replies.iter().find_map(as_error) {
            Some(error) => fail(&format!("this server is not part of a Cluster ({error})")),
            None => fail("invalid reply to CLUSTER SLOTS"),
        },
    }
}

/// The master of a range of slots, if the range contains the slot: `[first, last, [host, port, …], replicas…]`.
fn master_of(range: &Value, slot: i64, asked: &ServerAddress) -> Option<ServerAddress> {
    let Value::Array(parts) = range else { return None };
    match parts.as_slice() {
        [Value::Int(first), Value::Int(last), Value::Array(master), ..] if (*first..=*last).contains(&slot) => {
            address(master, asked)
        }
        _ => None,
    }
}

/// A host and a port. A server that does not know its own name leaves it empty: then it is the server that replied.
fn address(parts: &[Value], asked: &ServerAddress) -> Option<ServerAddress> {
    let host = parts.first().and_then(text).filter(|host| !host.is_empty() && host != "?");
    let port = match parts.get(1)? {
        Value::Int(port) => u16::try_from(*port).ok()?,
        other => text(other)?.parse().ok()?,
    };
    let port = if port == 0 { PORT } else { port };
    Some(ServerAddress { host: host.unwrap_or_else(|| asked.host.clone()), port })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

fn as_error(value: &Value) -> Option<String> {
    match value {
        Value::ServerError(error) => Some(faults::text(error)),
        _ => None,
    }
}
