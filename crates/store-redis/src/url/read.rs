//! Parses URLs of Redis stores.

use std::path::PathBuf;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use cronhold_store_remote::url::{
    UrlCredentials, UrlParams, UrlParts, invalid_url, read_flag, unescape, unknown_param,
};

use super::settings::{NAMES, UrlSettings};
use super::{PORT, RedisUrl, SENTINEL_PORT, Topology};

/// The URL in hints.
const EXAMPLE: &str = "redis://localhost:6379";

/// Parses a URL.
pub(super) fn read(text: &str) -> Result<RedisUrl, TextError> {
    let parts = UrlParts::split(text).ok_or_else(|| {
        invalid_url("not a URL of a Redis store")
            .hint("such as redis://localhost, or redis+sentinel://host1,host2/name")
    })??;
    let scheme = parts.scheme;
    let servers = parts.servers(if scheme == "redis+sentinel" { SENTINEL_PORT } else { PORT }, EXAMPLE)?;
    let mut params = parts.params()?;
    let (topology, path) = match scheme {
        "redis" | "rediss" if servers.len() > 1 => {
            let hint = "use redis+sentinel:// or redis+cluster:// for several servers";
            return Err(invalid_url(format!("`{scheme}://` takes one server")).hint(hint));
        }
        "redis" | "rediss" => (Topology::Single, parts.path),
        "redis+sentinel" => sentinel(parts.path, &mut params)?,
        "redis+cluster" => (Topology::Cluster, parts.path),
        other => {
            let hint = "use redis, rediss, redis+sentinel or redis+cluster";
            return Err(invalid_url(format!("unknown scheme `{}`", shortened(other))).hint(hint));
        }
    };
    let db = db(path, &topology)?;
    let tls = tls(scheme, &mut params)?;
    let ca = params.take("ca").map(PathBuf::from);
    if ca.is_some() && !tls {
        return Err(invalid_url("`ca` has no effect without TLS").hint(match topology {
            Topology::Single => "write rediss://",
            _ => "add tls=true",
        }));
    }
    let settings = settings(params, &topology)?;
    Ok(RedisUrl { topology, servers, tls, ca, credentials: parts.credentials, db, settings })
}

/// Parses a Sentinel path: the name of the service, and the rest.
fn sentinel<'a>(path: &'a str, params: &mut UrlParams) -> Result<(Topology, &'a str), TextError> {
    let path = path.trim_start_matches('/');
    let end = path.find('/').unwrap_or(path.len());
    let (service, rest) = path.split_at(end);
    if service.is_empty() {
        let hint = "write it after the servers: redis+sentinel://host1,host2/mymaster";
        return Err(invalid_url("the name of the Sentinel master is missing").hint(hint));
    }
    let service = unescape(service)?;
    let login = UrlCredentials { user: params.take("sentinel_user"), password: params.take("sentinel_password") };
    Ok((Topology::Sentinel { service, login }, rest))
}

fn db(path: &str, topology: &Topology) -> Result<u32, TextError> {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return Ok(0);
    }
    let db = path.parse().map_err(|_| invalid_url(format!("`{}` is not a database number", shortened(path))))?;
    if db != 0 && *topology == Topology::Cluster {
        return Err(invalid_url("a Cluster has only database 0"));
    }
    Ok(db)
}

fn tls(scheme: &str, params: &mut UrlParams) -> Result<bool, TextError> {
    let given = params.take("tls").map(|value| read_flag("tls", &value)).transpose()?;
    match (scheme, given) {
        ("redis", Some(true)) => Err(invalid_url("`redis://` is not encrypted").hint("write rediss://")),
        ("rediss", Some(false)) => Err(invalid_url("`rediss://` is encrypted").hint("write redis://")),
        ("rediss", _) => Ok(true),
        (_, given) => Ok(given == Some(true)),
    }
}

fn settings(params: UrlParams, topology: &Topology) -> Result<UrlSettings, TextError> {
    let mut known = NAMES.to_vec();
    known.extend(match topology {
        Topology::Single => vec!["ca"],
        Topology::Sentinel { .. } => vec!["ca", "tls", "sentinel_user", "sentinel_password"],
        Topology::Cluster => vec!["ca", "tls"],
    });
    let mut settings = UrlSettings::default();
    let mut given = Vec::new();
    for (name, value) in params {
        if value.is_empty() && NAMES.contains(&name.as_str()) {
            return Err(invalid_url(format!("`{name}` has no value")));
        }
        settings.take(&name, &value, &known).map_err(|error| sentinel_only(&name, error))?;
        given.push(name);
    }
    settings.complete(&given)?;
    if *topology == Topology::Cluster && !has_tag(&settings.namespace) {
        let hint = format!("such as namespace={{{}}}", settings.namespace);
        return Err(invalid_url("all keys must be in one slot of a Cluster: the namespace needs a {tag}").hint(hint));
    }
    if *topology == Topology::Cluster && !settings.tasks.is_empty() && !has_tag(&settings.tasks) {
        let hint = format!("such as tasks={{{}}}", settings.tasks);
        return Err(invalid_url("all keys of tasks must be in one slot of a Cluster: `tasks` needs a {tag}").hint(hint));
    }
    Ok(settings)
}

fn sentinel_only(name: &str, error: TextError) -> TextError {
    match name {
        "sentinel_user" | "sentinel_password" => {
            unknown_param(name, &["namespace"]).hint("it applies to redis+sentinel://")
        }
        _ => error,
    }
}

/// Whether Redis hashes a part of a key in braces instead of the whole key.
fn has_tag(namespace: &str) -> bool {
    let Some((_, rest)) = namespace.split_once('{') else { return false };
    rest.find('}').is_some_and(|end| end > 0)
}
