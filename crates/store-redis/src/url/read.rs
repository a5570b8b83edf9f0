//! Parses URLs. Errors do not quote anything that could be a password.

use std::path::PathBuf;

use cronhold_core::percent;
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

use super::settings::{NAMES, UrlSettings, unknown_param, wrong};
use super::{PORT, RedisUrl, SENTINEL_PORT, ServerAddress, Topology};

/// Servers in one URL, at most.
const SERVERS_MAX: usize = 64;

/// A user and a password.
type Credentials = (Option<String>, Option<String>);

/// The name and the value of a parameter.
type UrlParam = (String, String);

/// Parses a URL.
pub(super) fn read(text: &str) -> Result<RedisUrl, TextError> {
    let (scheme, rest) = text.split_once("://").ok_or_else(|| {
        wrong("not a URL of a Redis store").hint("such as redis://localhost, or redis+sentinel://host1,host2/name")
    })?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    if tail.contains('#') {
        return Err(wrong("unexpected `#`").hint("write `#` in names and passwords as %23"));
    }
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    let (credentials, hosts) = credentials(authority)?;
    let port = if scheme == "redis+sentinel" { SENTINEL_PORT } else { PORT };
    let servers = servers(hosts, port).map_err(|error| unless_password(error, tail))?;
    let mut params = params(query)?;
    let (topology, path) = match scheme {
        "redis" | "rediss" if servers.len() > 1 => {
            let hint = "use redis+sentinel:// or redis+cluster:// for several servers";
            return Err(wrong(format!("`{scheme}://` takes one server")).hint(hint));
        }
        "redis" | "rediss" => (Topology::Single, path),
        "redis+sentinel" => sentinel(path, &mut params)?,
        "redis+cluster" => (Topology::Cluster, path),
        other => {
            let hint = "use redis, rediss, redis+sentinel or redis+cluster";
            return Err(wrong(format!("unknown scheme `{}`", shortened(other))).hint(hint));
        }
    };
    let (user, password) = credentials;
    let db = db(path, &topology)?;
    let tls = tls(scheme, &mut params)?;
    let ca = taken(&mut params, "ca").map(PathBuf::from);
    if ca.is_some() && !tls {
        return Err(wrong("`ca` has no effect without TLS").hint(match topology {
            Topology::Single => "write rediss://",
            _ => "add tls=true",
        }));
    }
    let settings = settings(params, &topology)?;
    Ok(RedisUrl { topology, servers, tls, ca, user, password, db, settings })
}

/// The part before the last `@`.
fn credentials(authority: &str) -> Result<(Credentials, &str), TextError> {
    let Some((who, hosts)) = authority.rsplit_once('@') else { return Ok(((None, None), authority)) };
    let (user, password) = match who.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (who, None),
    };
    let user = Some(unescaped(user)?).filter(|user| !user.is_empty());
    let password = password.map(unescaped).transpose()?.filter(|password| !password.is_empty());
    Ok(((user, password), hosts))
}

fn servers(hosts: &str, port: u16) -> Result<Vec<ServerAddress>, TextError> {
    if hosts.is_empty() {
        return Err(wrong("the URL names no server").hint("such as redis://localhost:6379"));
    }
    let servers: Vec<ServerAddress> = hosts.split(',').map(|host| server(host, port)).collect::<Result<_, _>>()?;
    if servers.len() > SERVERS_MAX {
        return Err(wrong(format!("a URL can name at most {SERVERS_MAX} servers")));
    }
    Ok(servers)
}

/// Reads `host`, `host:port` or `[address]:port`.
pub(crate) fn server(text: &str, port: u16) -> Result<ServerAddress, TextError> {
    let (host, digits) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or(rest))),
        None => match text.rsplit_once(':') {
            Some((host, digits)) => (host, Some(digits)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(wrong("a server has an empty name").hint("such as redis://localhost:6379"));
    }
    let port = match digits {
        None => port,
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| wrong(format!("`{}` is not a port", shortened(digits))))?,
    };
    Ok(ServerAddress { host: host.to_owned(), port })
}

/// A password with a slash looks like a server and a path. Then the supposed server is a part of the password.
fn unless_password(error: TextError, tail: &str) -> TextError {
    if tail.contains('@') {
        wrong("a password has a character that ends it").hint("write `/` as %2F, `?` as %3F, `#` as %23, `@` as %40")
    } else {
        error
    }
}

fn params(query: &str) -> Result<Vec<UrlParam>, TextError> {
    let mut params: Vec<UrlParam> = Vec::new();
    for param in query.split('&').filter(|param| !param.is_empty()) {
        let (name, value) = param.split_once('=').unwrap_or((param, ""));
        if params.iter().any(|(other, _)| other == name) {
            return Err(wrong(format!("`{}` occurs twice", shortened(name))));
        }
        params.push((name.to_owned(), unescaped(value)?));
    }
    Ok(params)
}

fn taken(params: &mut Vec<UrlParam>, name: &str) -> Option<String> {
    let index = params.iter().position(|(other, _)| other == name)?;
    Some(params.remove(index).1)
}

/// Parses a Sentinel path: the name of the service, and the rest.
fn sentinel<'a>(path: &'a str, params: &mut Vec<UrlParam>) -> Result<(Topology, &'a str), TextError> {
    let path = path.trim_start_matches('/');
    let end = path.find('/').unwrap_or(path.len());
    let (service, rest) = path.split_at(end);
    if service.is_empty() {
        let hint = "write it after the servers: redis+sentinel://host1,host2/mymaster";
        return Err(wrong("the name of the Sentinel master is missing").hint(hint));
    }
    let service = unescaped(service)?;
    let (user, password) = (taken(params, "sentinel_user"), taken(params, "sentinel_password"));
    Ok((Topology::Sentinel { service, user, password }, rest))
}

fn db(path: &str, topology: &Topology) -> Result<u32, TextError> {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return Ok(0);
    }
    let db = path.parse().map_err(|_| wrong(format!("`{}` is not a database number", shortened(path))))?;
    if db != 0 && *topology == Topology::Cluster {
        return Err(wrong("a Cluster has only database 0"));
    }
    Ok(db)
}

fn tls(scheme: &str, params: &mut Vec<UrlParam>) -> Result<bool, TextError> {
    let given = taken(params, "tls");
    match (scheme, given.as_deref()) {
        ("rediss", None | Some("true")) | ("redis+sentinel" | "redis+cluster", Some("true")) => Ok(true),
        (_, None) | ("redis" | "redis+sentinel" | "redis+cluster", Some("false")) => Ok(false),
        ("redis", Some("true")) => Err(wrong("`redis://` is not encrypted").hint("write rediss://")),
        ("rediss", Some("false")) => Err(wrong("`rediss://` is encrypted").hint("write redis://")),
        (_, Some(other)) => Err(wrong(format!("`tls` is `true` or `false`, not `{}`", shortened(other)))),
    }
}

fn settings(params: Vec<UrlParam>, topology: &Topology) -> Result<UrlSettings, TextError> {
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
            return Err(wrong(format!("`{name}` has no value")));
        }
        settings.take(&name, &value, &known).map_err(|error| sentinel_only(&name, error))?;
        given.push(name);
    }
    settings.complete(&given)?;
    if *topology == Topology::Cluster && !has_tag(&settings.namespace) {
        let hint = format!("such as namespace={{{}}}", settings.namespace);
        return Err(wrong("all keys must be in one slot of a Cluster: the namespace needs a {tag}").hint(hint));
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

/// Decodes the `%XX` escapes of a URL.
fn unescaped(text: &str) -> Result<String, TextError> {
    percent::decode(text).ok_or_else(|| {
        wrong("a `%` is not followed by two hexadecimal digits, or the text is not UTF-8").hint("write `%` as %25")
    })
}
