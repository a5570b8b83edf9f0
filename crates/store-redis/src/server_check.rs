//! Checks the server when a writer enrolls. A server that evicts keys is refused; other ways to lose data are warnings.

use cronhold_store::Fault;
use redis::{Cmd, Value};

use crate::connections::RedisConnections;

/// The oldest version that has the commands we need.
const VERSION_MIN: (u32, u32) = (6, 2);

/// The result of the check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerCheck {
    /// Why the server cannot be used.
    pub(crate) refusal: Option<String>,
    /// What the operator should change.
    pub(crate) warnings: Vec<String>,
    pub(crate) replicas: u64,
}

/// Checks a server. With `accept_loss`, eviction is a warning instead of a refusal.
pub(crate) async fn check(connections: &RedisConnections, accept_loss: bool) -> Result<ServerCheck, Fault> {
    let commands = vec![redis::cmd("INFO"), setting("save"), setting("appendfsync")];
    let mut replies = connections.request(commands).await?.into_iter();
    let mut next = || replies.next().unwrap_or(Value::Nil);
    let (info, save, fsync) = (next(), next(), next());
    // A server that is still loading, or is the wrong one, cannot be checked.
    if let Value::ServerError(error) = &info
        && error.code() != "NOPERM"
    {
        return Err(connections.fault_of(error));
    }
    let info = text(&info).unwrap_or_default();
    let mut check = evaluate(&info, value(save).as_deref(), value(fsync).as_deref(), accept_loss);
    check.refusal = check.refusal.map(|why| format!("{}: {why}", connections.server_name()));
    Ok(check)
}

/// The number of connected replicas.
pub(crate) async fn count_replicas(connections: &RedisConnections) -> Result<u64, Fault> {
    let mut command = redis::cmd("INFO");
    command.arg("replication");
    let info = connections.request_one(command).await?;
    Ok(number(&text(&info).unwrap_or_default(), "connected_slaves").unwrap_or(0))
}

/// The id of the server process in the reply to INFO.
pub(crate) fn run_id(info: &Value) -> Option<String> {
    text(info).and_then(|info| field(&info, "run_id").map(str::to_owned))
}

/// Evaluates the reply to INFO, and two settings that the server may refuse to show.
fn evaluate(info: &str, save: Option<&str>, fsync: Option<&str>, accept_loss: bool) -> ServerCheck {
    let replicas = number(info, "connected_slaves").unwrap_or(0);
    let mut check = ServerCheck { replicas, ..ServerCheck::default() };
    match field(info, "redis_version").map(|text| (text, version(text))) {
        Some((text, Some(version))) if version < VERSION_MIN => {
            let (major, minor) = VERSION_MIN;
            check.refusal = Some(format!("Redis {major}.{minor} or newer is required, this is {text}"));
        }
        Some(_) => {}
        None => check.warnings.push(
            "the user may not run INFO: the version of the server, its eviction policy and its persistence are \
             unknown, and after a restart with older data, nodes do not wait for each other"
                .to_owned(),
        ),
    }
    if let Some(policy) = eviction_policy(info) {
        let what =
            format!("Redis evicts keys when its memory is full (maxmemory-policy {policy}), including locks and runs");
        if accept_loss {
            check.warnings.push(what);
        } else if check.refusal.is_none() {
            check.refusal =
                Some(format!("{what}; set maxmemory-policy to noeviction, or accept the risk with --accept-loss"));
        }
    }
    if !info.is_empty() {
        check.warnings.extend(durability_warning(info, save, fsync));
    }
    check
}

/// The policy of a server that evicts keys; `None` if it does not.
fn eviction_policy(info: &str) -> Option<&str> {
    let has_limit = number(info, "maxmemory").is_some_and(|bytes| bytes > 0);
    field(info, "maxmemory_policy").filter(|policy| has_limit && *policy != "noeviction")
}

/// What is lost if the server or its machine fails; `None` if nothing is.
fn durability_warning(info: &str, save: Option<&str>, fsync: Option<&str>) -> Option<String> {
    let has_log = field(info, "aof_enabled") == Some("1");
    let warning = match (has_log, fsync, save) {
        (true, Some("always"), _) => return None,
        (true, Some("everysec"), _) => {
            "Redis syncs to disk once a second: if its machine fails, up to a second of commits is lost; set \
             appendfsync to always"
        }
        (true, Some(_), _) => {
            "Redis does not sync to disk: if its machine fails, up to half a minute of commits is lost; set \
             appendfsync to always"
        }
        (true, None, _) => "the user may not run CONFIG GET: whether every commit is synced to disk is unknown",
        (false, _, Some("")) => {
            "Redis has no persistence: if it stops, everything is lost; set appendonly to yes and appendfsync to \
             always"
        }
        (false, _, Some(_)) => {
            "Redis only writes snapshots: if it fails, all commits since the last snapshot are lost; set appendonly to \
             yes and appendfsync to always"
        }
        (false, _, None) => {
            "Redis has no append-only file: if it fails, all commits since the last snapshot, if any, are lost; set \
             appendonly to yes and appendfsync to always"
        }
    };
    Some(warning.to_owned())
}

fn setting(name: &str) -> Cmd {
    let mut command = redis::cmd("CONFIG");
    command.arg("GET").arg(name);
    command
}

/// The value of a setting; `None` if the user may not read it.
fn value(reply: Value) -> Option<String> {
    match reply {
        Value::Array(parts) => parts.get(1).and_then(text),
        Value::Map(pairs) => pairs.first().and_then(|(_, value)| text(value)),
        _ => None,
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        _ => None,
    }
}

/// A field in the reply to INFO, which has lines `name:value`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn number(info: &str, name: &str) -> Option<u64> {
    field(info, name)?.parse().ok()
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(version: &str, maxmemory: u64, policy: &str, aof: u8) -> String {
        format!(
            "# ServerAddress\r\nredis_version:{version}\r\nmaxmemory:{maxmemory}\r\nmaxmemory_policy:{policy}\r\n\
             aof_enabled:{aof}\r\nconnected_slaves:2\r\n"
        )
    }

    #[test]
    fn old_or_evicting_server_is_refused() {
        for (version, maxmemory, policy, accept_loss, refusal) in [
            ("7.0.15", 0, "noeviction", false, None),
            ("7.0.15", 0, "allkeys-lru", false, None),
            ("7.0.15", 1_000, "noeviction", false, None),
            ("6.2.0", 0, "noeviction", false, None),
            ("10.0.1", 0, "noeviction", false, None),
            ("7.0.15", 1_000, "allkeys-lru", false, Some("--accept-loss")),
            ("7.0.15", 1_000, "volatile-ttl", false, Some("volatile-ttl")),
            ("7.0.15", 1_000, "allkeys-lru", true, None),
            ("6.0.16", 0, "noeviction", false, Some("Redis 6.2 or newer is required, this is 6.0.16")),
            ("6.0.16", 0, "noeviction", true, Some("6.2")),
        ] {
            let check = evaluate(&info(version, maxmemory, policy, 1), Some(""), Some("always"), accept_loss);
            let refused = check.refusal.unwrap_or_default();
            assert_eq!(refused.is_empty(), refusal.is_none(), "{version} {maxmemory} {policy}: {refused}");
            assert!(refused.contains(refusal.unwrap_or_default()), "{version} {maxmemory} {policy}: {refused}");
            let is_warned = maxmemory > 0 && policy != "noeviction" && accept_loss;
            assert_eq!(check.warnings.len(), usize::from(is_warned), "{version} {maxmemory} {policy}");
            assert_eq!(check.replicas, 2);
        }
    }

    #[test]
    fn weak_persistence_is_a_warning() {
        for (aof, save, fsync, expected) in [
            (1, Some(""), Some("always"), None),
            (1, Some(""), Some("everysec"), Some("up to a second")),
            (1, Some(""), Some("no"), Some("half a minute")),
            (1, None, None, Some("CONFIG GET")),
            (0, Some(""), Some("always"), Some("everything is lost")),
            (0, Some("3600 1"), Some("always"), Some("last snapshot")),
            (0, None, None, Some("if any")),
        ] {
            let warnings = evaluate(&info("7.0.15", 0, "noeviction", aof), save, fsync, false).warnings.join("\n");
            assert_eq!(warnings.is_empty(), expected.is_none(), "{aof} {save:?} {fsync:?}: {warnings}");
            assert!(warnings.contains(expected.unwrap_or_default()), "{aof} {save:?} {fsync:?}: {warnings}");
        }
        let hidden = evaluate("", None, None, false);
        assert_eq!((hidden.refusal, hidden.warnings.len()), (None, 1));
    }
}
