//! The URL of a ZooKeeper store: `zk://host:port,host:port/root?name=value`, or `zks://` for TLS. It does not depend on
//! the connection, because the command line parses and prints URLs without connecting.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cronhold_core::percent;
use cronhold_core::policy::lease::LEASE_DEFAULT;
use cronhold_schedule::text::shortened;
use cronhold_schedule::{Span, TextError};
use cronhold_store_remote::url::{
    PrintedParams, ServerAddress, UrlCredentials, UrlParams, UrlParts, as_span, invalid_url, read_count, read_servers,
    read_span, unescape, unknown_param,
};

/// The default port of a server.
const PORT: u16 = 2181;

/// The default root, as in castle-cron.
const ROOT: &str = "/castle-cron";

/// Bytes of a root, which is part of every path.
const ROOT_MAX: usize = 200;

/// Bytes of a request that are not its operations.
const REQUEST_MARGIN: usize = 1_024;

/// Parameters that every URL may have.
const NAMES: [&str; 7] = ["timeout", "lease", "output", "outputs", "keep", "max_bytes", "auth"];

/// Parameters of a URL with TLS.
const TLS_NAMES: [&str; 3] = ["ca", "cert", "key"];

/// The shortest timeout of a session: servers allow two ticks, and a tick is rarely shorter than half a second.
const TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// The longest timeout of a session. A node that is gone is listed for that long.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// The largest request that a server accepts, unless its operator has changed `jute.maxbuffer`.
const REQUEST_BYTES: u64 = 1_048_575;

/// The largest `keep`.
const KEEP_MAX: u64 = 100_000;

/// The smallest and the largest `max_bytes`.
const REQUEST_BYTES_RANGE: (u64, u64) = (65_536, 64 << 20);

const EXAMPLE: &str = "zk://localhost:2181/castle-cron";

/// The URL of a ZooKeeper store. Passwords are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ZooKeeperUrl {
    servers: Vec<ServerAddress>,
    root: String,
    credentials: UrlCredentials,
    /// Files for TLS; `None` without it.
    tls: Option<TlsFiles>,
    settings: ZooKeeperSettings,
}

/// The parameters of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ZooKeeperSettings {
    /// How long servers keep a silent session, and how long this process waits for a reply.
    pub(crate) timeout: Duration,
    /// The lease of runs without a lock, for jobs that set none.
    pub(crate) lease: Duration,
    /// Bytes that are kept of one output.
    pub(crate) output: u64,
    /// Outputs that are kept.
    pub(crate) outputs: u64,
    /// Runs that are kept of each job and state.
    pub(crate) keep: u32,
    /// Bytes of the largest request that the servers accept.
    pub(crate) max_bytes: u64,
    /// How the user and the password are presented.
    pub(crate) auth: AuthScheme,
}

/// How a user logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AuthScheme {
    /// The scheme `digest`: servers know the user by a digest of the password, and need no configuration.
    #[default]
    Digest,
    /// SASL with DIGEST-MD5: servers have a list of users.
    Sasl,
}

/// Files in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// The authority that signs the servers' certificates.
    pub(crate) ca: PathBuf,
    /// The certificate and the key of this client, for servers that require them.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

impl Default for ZooKeeperSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            lease: Duration::from_micros(LEASE_DEFAULT.micros()),
            output: 64 << 10,
            outputs: 1_000,
            keep: 100,
            max_bytes: REQUEST_BYTES,
            auth: AuthScheme::default(),
        }
    }
}

impl ZooKeeperUrl {
    /// Parses a URL. If it names no servers, they are those of `servers`: the value of `ZOOKEEPER_SERVERS`.
    pub fn parse(text: &str, servers: Option<&str>) -> Result<Self, TextError> {
        let parts = UrlParts::split(text)
            .ok_or_else(|| invalid_url("not a URL of a ZooKeeper store").hint(format!("such as {EXAMPLE}")))??;
        let is_encrypted = match parts.scheme {
            "zk" => false,
            "zks" => true,
            other => {
                let error = invalid_url(format!("unknown scheme `{}`", shortened(other)));
                return Err(error.hint("use zk, or zks for TLS"));
            }
        };
        let servers = match servers {
            Some(servers) if !parts.has_servers() => read_servers(servers, PORT, EXAMPLE)
                .map_err(|error| invalid_url(format!("the environment variable ZOOKEEPER_SERVERS: {error}")))?,
            _ if !parts.has_servers() => {
                let hint = format!("such as {EXAMPLE}, or set ZOOKEEPER_SERVERS to a list of host:port");
                return Err(invalid_url("the URL names no server").hint(hint));
            }
            _ => parts.servers(PORT, EXAMPLE)?,
        };
        if parts.credentials.user.is_some() != parts.credentials.password.is_some() {
            let hint = "such as zk://user:password@host/castle-cron";
            return Err(invalid_url("a login needs a user and a password").hint(hint));
        }
        let mut params = parts.params()?;
        let tls = if is_encrypted { Some(tls_files(&mut params)?) } else { None };
        let settings = settings(params, is_encrypted)?;
        if settings.auth == AuthScheme::Sasl && parts.credentials.user.is_none() {
            let hint = "such as zk://user:password@host/castle-cron?auth=sasl";
            return Err(invalid_url("`auth=sasl` needs a user and a password").hint(hint));
        }
        let root = if matches!(parts.path, "" | "/") { ROOT.to_owned() } else { root(parts.path)? };
        Ok(Self { servers, root, credentials: parts.credentials, tls, settings })
    }

    /// The root znode.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Whether the root is the default one.
    pub fn has_default_root(&self) -> bool {
        self.root == ROOT
    }

    /// The same URL with another root.
    pub fn with_root(&self, path: &str) -> Result<Self, TextError> {
        Ok(Self { root: root(path)?, ..self.clone() })
    }

    /// The lease of runs without a lock, for jobs that set none.
    pub fn lease(&self) -> Span {
        as_span(self.settings.lease)
    }

    pub(crate) fn settings(&self) -> &ZooKeeperSettings {
        &self.settings
    }

    /// Bytes of the largest request, without what the client adds.
    pub(crate) fn request_bytes_max(&self) -> usize {
        let most = usize::try_from(self.settings.max_bytes).unwrap_or(usize::MAX);
        most.saturating_sub(REQUEST_MARGIN)
    }

    /// The user and the password.
    pub(crate) fn credentials(&self) -> Option<(&str, &str)> {
        self.credentials.user.as_deref().zip(self.credentials.password.as_deref())
    }

    pub(crate) fn tls(&self) -> Option<&TlsFiles> {
        self.tls.as_ref()
    }

    pub(crate) fn servers(&self) -> &[ServerAddress] {
        &self.servers
    }

    /// The servers with commas between them.
    pub(crate) fn server_list(&self) -> String {
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        servers.join(",")
    }

    /// Parameters that differ from their defaults, in the order of the documentation.
    fn params(&self) -> PrintedParams {
        let (settings, default) = (&self.settings, ZooKeeperSettings::default());
        let mut params = PrintedParams::default();
        params.add_span("timeout", settings.timeout, default.timeout);
        params.add_span("lease", settings.lease, default.lease);
        params.add_number("output", settings.output, default.output);
        params.add_number("outputs", settings.outputs, default.outputs);
        params.add_number("keep", settings.keep.into(), default.keep.into());
        params.add_number("max_bytes", settings.max_bytes, default.max_bytes);
        if settings.auth == AuthScheme::Sasl {
            params.add("auth", "sasl".to_owned());
        }
        if let Some(TlsFiles { ca, identity }) = &self.tls {
            let mut add = |name: &str, path: &Path| params.add(name, percent::encode(&path.display().to_string(), "/"));
            add("ca", ca);
            if let Some((certificate, key)) = identity {
                add("cert", certificate);
                add("key", key);
            }
        }
        params
    }
}

/// Checks the path of a root.
fn root(path: &str) -> Result<String, TextError> {
    let root = unescape(path.trim_end_matches('/'))?;
    let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.chars().any(char::is_control);
    let is_valid = root.len() <= ROOT_MAX && root.strip_prefix('/').is_some_and(|parts| parts.split('/').all(is_part));
    if !is_valid || root.starts_with("/zookeeper") {
        let error = invalid_url(format!("`{}` cannot be the root znode", shortened(&root)));
        return Err(error.hint(format!("such as {ROOT}, of at most {ROOT_MAX} bytes")));
    }
    Ok(root)
}

fn tls_files(params: &mut UrlParams) -> Result<TlsFiles, TextError> {
    let mut file = |name: &str| params.take(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let ca = file("ca").ok_or_else(|| {
        invalid_url("`zks://` needs `ca`")
            .hint("the file with the certificate of the authority that signs the servers'")
    })?;
    let identity = match (file("cert"), file("key")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(invalid_url("`cert` and `key` belong together").hint("name both files, or neither")),
    };
    Ok(TlsFiles { ca, identity })
}

fn settings(params: UrlParams, is_encrypted: bool) -> Result<ZooKeeperSettings, TextError> {
    let mut settings = ZooKeeperSettings::default();
    for (name, value) in params {
        match name.as_str() {
            "timeout" => settings.timeout = timeout(&value)?,
            "lease" => settings.lease = read_span("lease", &value)?,
            "output" => settings.output = read_count("output", &value, 1_024, 1 << 30)?,
            "outputs" => settings.outputs = read_count("outputs", &value, 1, 100_000)?,
            "keep" => {
                let keep = read_count("keep", &value, 1, KEEP_MAX)?;
                settings.keep = u32::try_from(keep).expect("it is at most KEEP_MAX");
            }
            "max_bytes" => {
                let (min, max) = REQUEST_BYTES_RANGE;
                settings.max_bytes = read_count("max_bytes", &value, min, max)?;
            }
            "auth" => settings.auth = auth_scheme(&value)?,
            tls if TLS_NAMES.contains(&tls) => {
                return Err(invalid_url(format!("`{tls}` has no effect without TLS")).hint("write zks://"));
            }
            unknown => {
                let tls: &[&str] = if is_encrypted { &TLS_NAMES } else { &[] };
                return Err(unknown_param(unknown, &[&NAMES[..], tls].concat()));
            }
        }
    }
    Ok(settings)
}

fn auth_scheme(value: &str) -> Result<AuthScheme, TextError> {
    match value {
        "digest" => Ok(AuthScheme::Digest),
        "sasl" => Ok(AuthScheme::Sasl),
        other => {
            let error = invalid_url(format!("`auth` cannot be `{}`", shortened(other)));
            Err(error.hint("use digest, or sasl for SASL with DIGEST-MD5; Kerberos is not supported"))
        }
    }
}

fn timeout(value: &str) -> Result<Duration, TextError> {
    let timeout = read_span("timeout", value)?;
    if !(TIMEOUT_MIN..=TIMEOUT_MAX).contains(&timeout) {
        let (min, max) = (as_span(TIMEOUT_MIN), as_span(TIMEOUT_MAX));
        return Err(invalid_url(format!("`timeout` must be between {min} and {max}")));
    }
    Ok(timeout)
}

impl fmt::Display for ZooKeeperUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "zks" } else { "zk" };
        let root = percent::encode(&self.root, "/");
        write!(f, "{scheme}://{}{}{root}{}", self.credentials, self.server_list(), self.params())
    }
}

impl fmt::Debug for ZooKeeperUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_printed() {
        for (text, printed) in [
            ("zk://a", "zk://a:2181/castle-cron"),
            ("zk://a:1,b:2,[::1]:3/castle-cron?timeout=10s", "zk://a:1,b:2,[::1]:3/castle-cron"),
            ("zk://a/my/jobs/?timeout=5s&keep=7", "zk://a:2181/my/jobs?timeout=5s&keep=7"),
            ("zk://ada:secret@a/x", "zk://ada:***@a:2181/x"),
            ("zks://a/x?ca=/etc/ca.pem", "zks://a:2181/x?ca=/etc/ca.pem"),
            ("zk://ada:secret@a/x?auth=sasl", "zk://ada:***@a:2181/x?auth=sasl"),
            ("zk://ada:secret@a/x?auth=digest", "zk://ada:***@a:2181/x"),
            ("zk:///y", "zk://h:5,i:2181/y"),
            ("zk:///", "zk://h:5,i:2181/castle-cron"),
        ] {
            let url = ZooKeeperUrl::parse(text, Some("h:5,i")).expect(text);
            assert_eq!(url.to_string(), printed, "{text}");
            assert!(!format!("{url:?}").contains("secret"));
        }
    }

    #[test]
    fn invalid_urls_are_rejected_with_a_reason() {
        for (text, message) in [
            ("zk:///x", "the URL names no server"),
            ("zk://a/zookeeper/x", "cannot be the root znode"),
            ("zk://a/x/../y", "cannot be the root znode"),
            ("zk://ada@a", "needs a user and a password"),
            ("zk://a?auth=sasl", "`auth=sasl` needs a user and a password"),
            ("zk://ada:secret@a?auth=kerberos", "Kerberos is not supported"),
            ("zk://a?ca=x", "`ca` has no effect without TLS"),
            ("zks://a", "`zks://` needs `ca`"),
            ("zks://a?ca=x&cert=y", "`cert` and `key` belong together"),
            ("zk://a?timeuot=1s", "did you mean `timeout`?"),
            ("zk://a?timeout=1ms", "`timeout` must be between 1s and 1m"),
            ("zk://a?keep=0", "`keep` is a number from 1"),
        ] {
            let error = ZooKeeperUrl::parse(text, None).expect_err(text).to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        let error = ZooKeeperUrl::parse("zk:///x", Some("a:port")).expect_err("no port").to_string();
        assert!(error.contains("ZOOKEEPER_SERVERS"), "{error}");
    }
}
