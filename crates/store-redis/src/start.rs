//! What is looked at when a writer enrolls: whether the server can keep what is promised. A server that throws records
//! away is refused; what it may lose otherwise is said.

use cronhold_store::Fault;
use redis::{Cmd, Value};

use crate::link::Link;

/// The oldest version whose commands are enough.
const VERSION_MIN: (u32, u32) = (6, 2);

/// What was seen of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    /// Why it cannot be used.
    pub(crate) refusal: Option<String>,
    /// What whoever runs it should know.
    pub(crate) warnings: Vec<String>,
    /// How many replicas it has.
    pub(crate) replicas: u64,
}

/// Looks at a server. With `accept_loss` one that throws keys away is only warned about.
pub(crate) async fn look(link: &Link, accept_loss: bool) -> Result<Seen, Fault> {
    let mut answers = link.ask(vec![redis::cmd("INFO"), setting("save"), setting("appendfsync")]).await?.into_iter();
    let mut next = || answers.next().unwrap_or(Value::Nil);
    let (told, save, fsync) = (next(), next(), next());
    // A server that is still loading, or is not the right one, is not judged.
    if let Value::ServerError(error) = &told
        && error.code() != "NOPERM"
    {
        return Err(link.fault(error));
    }
    let told = text(&told).unwrap_or_default();
    let mut seen = judge(&told, value(save).as_deref(), value(fsync).as_deref(), accept_loss);
    seen.refusal = seen.refusal.map(|why| format!("{}: {why}", link.server()));
    Ok(seen)
}

/// How many replicas the server has now.
pub(crate) async fn replicas(link: &Link) -> Result<u64, Fault> {
    let mut command = redis::cmd("INFO");
    command.arg("replication");
    let told = link.ask_one(command).await?;
    Ok(number(&text(&told).unwrap_or_default(), "connected_slaves").unwrap_or(0))
}

/// Judges by what a server says of itself, and by two settings that it may keep to itself.
fn judge(told: &str, save: Option<&str>, fsync: Option<&str>, accept_loss: bool) -> Seen {
    let mut seen = Seen { replicas: number(told, "connected_slaves").unwrap_or(0), ..Seen::default() };
    match field(told, "redis_version").map(|text| (text, version(text))) {
        Some((text, Some(version))) if version < VERSION_MIN => {
            let (major, minor) = VERSION_MIN;
            seen.refusal = Some(format!("Redis {major}.{minor} or newer is needed, and this is {text}"));
        }
        Some(_) => {}
        None => seen.warnings.push(
            "the server does not let itself be looked at (INFO): its version, its memory policy and what it keeps on \
             disk are unknown"
                .to_owned(),
        ),
    }
    if let Some(policy) = evicts(told) {
        let what = format!(
            "Redis throws keys away when its memory is full (maxmemory-policy {policy}), and locks and runs with them"
        );
        if accept_loss {
            seen.warnings.push(what);
        } else if seen.refusal.is_none() {
            seen.refusal =
                Some(format!("{what}; set maxmemory-policy to noeviction, or take the risk with --accept-loss"));
        }
    }
    if !told.is_empty() {
        seen.warnings.extend(keeps(told, save, fsync));
    }
    seen
}

/// The policy of a server that throws keys away.
fn evicts(told: &str) -> Option<&str> {
    let has_limit = number(told, "maxmemory").is_some_and(|bytes| bytes > 0);
    field(told, "maxmemory_policy").filter(|policy| has_limit && *policy != "noeviction")
}

/// What is lost when the server or its machine fails, unless it is nothing.
fn keeps(told: &str, save: Option<&str>, fsync: Option<&str>) -> Option<String> {
    let has_log = field(told, "aof_enabled") == Some("1");
    let warning = match (has_log, fsync, save) {
        (true, Some("always"), _) => return None,
        (true, Some("everysec"), _) => {
            "Redis writes to its disk once a second: when its machine fails, up to a second of commits is lost; set \
             appendfsync to always"
        }
        (true, Some(_), _) => {
            "Redis leaves it to the system when to write to the disk: when its machine fails, up to half a minute of \
             commits is lost; set appendfsync to always"
        }
        (true, None, _) => {
            "the server does not let its settings be read (CONFIG GET): whether every commit is on its disk is unknown"
        }
        (false, _, Some("")) => {
            "Redis keeps nothing on disk: when it ends, everything is lost; set appendonly to yes and appendfsync to \
             always"
        }
        (false, _, Some(_)) => {
            "Redis writes to its disk only now and then: when it fails, all commits since the last snapshot are lost; \
             set appendonly to yes and appendfsync to always"
        }
        (false, _, None) => {
            "Redis keeps no log of its writes: when it fails, all commits since the last snapshot, if there is one, are \
             lost; set appendonly to yes and appendfsync to always"
        }
    };
    Some(warning.to_owned())
}

fn setting(name: &str) -> Cmd {
    let mut command = redis::cmd("CONFIG");
    command.arg("GET").arg(name);
    command
}

/// The value of a setting; none when it may not be read.
fn value(answer: Value) -> Option<String> {
    match answer {
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

/// A line of what a server tells of itself: `name:value`.
fn field<'a>(told: &'a str, name: &str) -> Option<&'a str> {
    told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn number(told: &str, name: &str) -> Option<u64> {
    field(told, name)?.parse().ok()
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(version: &str, maxmemory: u64, policy: &str, aof: u8) -> String {
        format!(
            "# Server\r\nredis_version:{version}\r\nmaxmemory:{maxmemory}\r\nmaxmemory_policy:{policy}\r\n\
             aof_enabled:{aof}\r\nconnected_slaves:2\r\n"
        )
    }

    #[test]
    fn a_server_is_refused_that_is_too_old_or_throws_keys_away() {
        for (version, maxmemory, policy, accept_loss, refusal) in [
            ("7.0.15", 0, "noeviction", false, None),
            ("7.0.15", 0, "allkeys-lru", false, None),
            ("7.0.15", 1_000, "noeviction", false, None),
            ("6.2.0", 0, "noeviction", false, None),
            ("10.0.1", 0, "noeviction", false, None),
            ("7.0.15", 1_000, "allkeys-lru", false, Some("--accept-loss")),
            ("7.0.15", 1_000, "volatile-ttl", false, Some("volatile-ttl")),
            ("7.0.15", 1_000, "allkeys-lru", true, None),
            ("6.0.16", 0, "noeviction", false, Some("Redis 6.2 or newer is needed, and this is 6.0.16")),
            ("6.0.16", 0, "noeviction", true, Some("6.2")),
        ] {
            let seen = judge(&told(version, maxmemory, policy, 1), Some(""), Some("always"), accept_loss);
            let said = seen.refusal.unwrap_or_default();
            assert_eq!(said.is_empty(), refusal.is_none(), "{version} {maxmemory} {policy}: {said}");
            assert!(said.contains(refusal.unwrap_or_default()), "{version} {maxmemory} {policy}: {said}");
            let is_warned = maxmemory > 0 && policy != "noeviction" && accept_loss;
            assert_eq!(seen.warnings.len(), usize::from(is_warned), "{version} {maxmemory} {policy}");
            assert_eq!(seen.replicas, 2);
        }
    }

    #[test]
    fn what_can_be_lost_is_said() {
        for (aof, save, fsync, said) in [
            (1, Some(""), Some("always"), None),
            (1, Some(""), Some("everysec"), Some("up to a second")),
            (1, Some(""), Some("no"), Some("half a minute")),
            (1, None, None, Some("CONFIG GET")),
            (0, Some(""), Some("always"), Some("everything is lost")),
            (0, Some("3600 1"), Some("always"), Some("last snapshot")),
            (0, None, None, Some("if there is one")),
        ] {
            let warnings = judge(&told("7.0.15", 0, "noeviction", aof), save, fsync, false).warnings.join("\n");
            assert_eq!(warnings.is_empty(), said.is_none(), "{aof} {save:?} {fsync:?}: {warnings}");
            assert!(warnings.contains(said.unwrap_or_default()), "{aof} {save:?} {fsync:?}: {warnings}");
        }
        let closed = judge("", None, None, false);
        assert_eq!((closed.refusal, closed.warnings.len()), (None, 1));
    }
}
