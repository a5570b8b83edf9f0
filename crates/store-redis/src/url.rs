//! The URL of a Redis store: servers, credentials and settings. It does not depend on the connections, because the
//! command line parses and prints URLs without connecting.

mod read;
mod settings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;

use cronhold_core::percent;
use cronhold_schedule::{Span, TextError};

pub(crate) use settings::{OutputKeyType, UrlSettings};

/// Printed instead of a password.
const MASK: &str = "***";

/// The default port of a server.
pub(crate) const PORT: u16 = 6379;

/// The default port of a Sentinel.
pub(crate) const SENTINEL_PORT: u16 = 26379;

/// The URL of a Redis store. Passwords are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    pub(crate) topology: Topology,
    /// The server, or the Sentinels or Cluster nodes that know it.
    pub(crate) servers: Vec<ServerAddress>,
    /// Whether connections use TLS.
    pub(crate) tls: bool,
    /// The authority that signs the servers' certificates; `None` for those that the system trusts.
    pub(crate) ca: Option<PathBuf>,
    /// `None` for the user `default` of Redis.
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) db: u32,
    pub(crate) settings: UrlSettings,
}

/// How the server that accepts writes is found.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Topology {
    /// The URL names it.
    Single,
    /// Sentinels name it.
    Sentinel {
        /// The name of the master in the Sentinels' configuration.
        service: String,
        /// The user for the Sentinels.
        user: Option<String>,
        /// The password for the Sentinels.
        password: Option<String>,
    },
    /// The Cluster node that serves the hash slot of the namespace.
    Cluster,
}

/// The host and the port of a server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ServerAddress {
    /// A name or an address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl RedisUrl {
    /// Parses a URL.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        read::read(text)
    }

    /// The prefix of every key, including braces.
    pub fn namespace(&self) -> &str {
        &self.settings.namespace
    }

    /// Whether the URL leaves the namespace at its default.
    pub fn has_default_namespace(&self) -> bool {
        self.settings.namespace == UrlSettings::default().namespace
    }

    /// The same URL with another namespace.
    pub fn with_namespace(&self, namespace: &str) -> Result<Self, TextError> {
        let namespace = settings::namespace(namespace)?;
        Ok(Self { settings: UrlSettings { namespace, ..self.settings.clone() }, ..self.clone() })
    }

    /// Whether the URL has `peers=cronken`.
    pub fn names_peers(&self) -> bool {
        self.settings.peers == Some(true)
    }

    /// The lease of runs without a lock, for jobs that set none.
    pub fn lease(&self) -> Span {
        settings::as_span(self.settings.lease)
    }

    fn scheme(&self) -> &'static str {
        match self.topology {
            Topology::Single if self.tls => "rediss",
            Topology::Single => "redis",
            Topology::Sentinel { .. } => "redis+sentinel",
            Topology::Cluster => "redis+cluster",
        }
    }

    /// Parameters that differ from their defaults, in the order of the documentation.
    fn params(&self) -> Vec<String> {
        let mut params = Vec::new();
        if let Topology::Sentinel { user, password, .. } = &self.topology {
            params.extend(user.as_deref().map(|user| format!("sentinel_user={}", escaped(user, ""))));
            params.extend(password.as_ref().map(|_| format!("sentinel_password={MASK}")));
        }
        if self.tls && self.topology != Topology::Single {
            params.push("tls=true".to_owned());
        }
        params.extend(self.ca.as_ref().map(|ca| format!("ca={}", escaped(&ca.display().to_string(), "/"))));
        params.extend(self.settings.params());
        params
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme())?;
        let user = self.user.as_deref().map(|user| escaped(user, "")).unwrap_or_default();
        match (&self.password, user.as_str()) {
            (Some(_), user) => write!(f, "{user}:{MASK}@")?,
            (None, "") => {}
            (None, user) => write!(f, "{user}@")?,
        }
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        f.write_str(&servers.join(","))?;
        if let Topology::Sentinel { service, .. } = &self.topology {
            write!(f, "/{}", escaped(service, ""))?;
        }
        if self.db != 0 {
            write!(f, "/{}", self.db)?;
        }
        let params = self.params();
        if params.is_empty() { Ok(()) } else { write!(f, "?{}", params.join("&")) }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Percent-encodes a text. Braces stay, because most namespaces have them.
pub(crate) fn escaped(text: &str, also: &str) -> String {
    percent::encode(text, &format!("{{}}:{also}"))
}
