//! Finds the server that takes writes: the one that is named, the one that Sentinels name, or the one of a Cluster that
//! has the slot of our keys.

use cronhold_store::Fault;
use redis::Value;

use super::line::{Line, Login};
use crate::faults;
use crate::url::{PORT, RedisUrl, Server, Way};

/// Opens a line to the server that takes writes. `attempt` says which of several is asked first, so that one that answers
/// wrongly does not do so for ever.
pub(super) async fn open(url: &RedisUrl, attempt: usize) -> Result<Line, Fault> {
    let server = locate(url, attempt).await?;
    let line = Line::open(url, &server, Login::Records).await?;
    if matches!(url.way, Way::Sentinel { .. }) {
        // A Sentinel may not know yet that another server has taken over.
        let role = line.ask(vec![redis::cmd("ROLE")]).await.map_err(faults::as_unsent)?;
        let is_master = matches!(role.first(), Some(Value::Array(parts)) if parts.first().and_then(text).as_deref() == Some("master"));
        if !is_master {
            return Err(faults::unreached(&server.to_string(), "this server is not the master any more, or not yet"));
        }
    }
    Ok(line)
}

/// Where the server is that takes writes.
pub(super) async fn locate(url: &RedisUrl, attempt: usize) -> Result<Server, Fault> {
    let mut last = faults::unreached("Redis", "no server is named");
    for index in 0..url.servers.len() {
        let server = &url.servers[(attempt + index) % url.servers.len()];
        let found = match &url.way {
            Way::Single => return Ok(server.clone()),
            Way::Sentinel { service, .. } => of_sentinel(url, server, service).await,
            Way::Cluster => of_cluster(url, server).await,
        };
        match found {
            Ok(found) => return Ok(found),
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

async fn of_sentinel(url: &RedisUrl, server: &Server, service: &str) -> Result<Server, Fault> {
    let line = Line::open(url, server, Login::Sentinel).await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(service);
    let answers = line.ask(vec![command]).await.map_err(faults::as_unsent)?;
    let unreached = |why: &str| Err(faults::unreached(&server.to_string(), why));
    match answers.into_iter().next() {
        Some(Value::Array(parts)) => match place(&parts, server) {
            Some(master) => Ok(master),
            None => unreached("the Sentinel's answer makes no sense"),
        },
        Some(Value::ServerError(error)) => {
            unreached(&format!("the Sentinel does not say who is master ({})", faults::text(&error)))
        }
        _ => unreached(&format!("the Sentinel knows no `{service}`")),
    }
}

async fn of_cluster(url: &RedisUrl, server: &Server) -> Result<Server, Fault> {
    let line = Line::open(url, server, Login::Records).await?;
    let mut slot = redis::cmd("CLUSTER");
    slot.arg("KEYSLOT").arg(&url.settings.namespace);
    let mut slots = redis::cmd("CLUSTER");
    slots.arg("SLOTS");
    let answers = line.ask(vec![slot, slots]).await.map_err(faults::as_unsent)?;
    let unreached = |why: &str| Err(faults::unreached(&server.to_string(), why));
    match answers.as_slice() {
        [Value::Int(slot), Value::Array(ranges)] => {
            match ranges.iter().find_map(|range| master_of(range, *slot, server)) {
                Some(master) => Ok(master),
                None => unreached(&format!("nobody in the Cluster has the slot {slot} of our keys")),
            }
        }
        answers => match answers.iter().find_map(as_error) {
            Some(error) => unreached(&format!("this server is not part of a Cluster ({error})")),
            None => unreached("the Cluster's answer makes no sense"),
        },
    }
}

/// The master of a range of slots, when the slot is in it: `[first, last, [host, port, …], replicas…]`.
fn master_of(range: &Value, slot: i64, asked: &Server) -> Option<Server> {
    let Value::Array(parts) = range else { return None };
    match parts.as_slice() {
        [Value::Int(first), Value::Int(last), Value::Array(master), ..] if (*first..=*last).contains(&slot) => {
            place(master, asked)
        }
        _ => None,
    }
}

/// A host and a port. A server that does not know its own name leaves it empty: it is the one that was asked.
fn place(parts: &[Value], asked: &Server) -> Option<Server> {
    let host = parts.first().and_then(text).filter(|host| !host.is_empty() && host != "?");
    let port = match parts.get(1)? {
        Value::Int(port) => u16::try_from(*port).ok()?,
        other => text(other)?.parse().ok()?,
    };
    let port = if port == 0 { PORT } else { port };
    Some(Server { host: host.unwrap_or_else(|| asked.host.clone()), port })
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
