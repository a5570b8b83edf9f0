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
use cronhold_store_remote::url::{MASK, PrintedParams, ServerAddress, UrlCredentials, as_span};

pub(crate) use settings::{OutputKeyType, UrlSettings};

/// The default port of a server.
pub(crate) const PORT: u16 = 6379;

/// The default port of a Sentinel.
pub(crate) const SENTINEL_PORT: u16 = 26379;

/// The prefix of the keys of tasks in a Cluster, where all of them must be in one hash slot.
const CLUSTER_TASKS: &str = "{sidejob}";

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
    /// No user is the user `default` of Redis.
    pub(crate) credentials: UrlCredentials,
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
        /// The user and the password for the Sentinels.
        login: UrlCredentials,
    },
    /// The Cluster node that serves the hash slot of the namespace.
    Cluster,
}

impl RedisUrl {
    /// Parses a URL.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        read::read(text)
    }

    /// The variable of SideJob that names the Redis of tasks, and the text of its URL: `SIDEJOB_URL`, or else
    /// `SIDEJOB_HOST` with the default port and database. `None` if neither is set. A program that has no store of its
    /// own finds tasks there.
    pub fn of_sidejob(variable: impl Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
        let value = |name: &'static str| variable(name).filter(|value| !value.is_empty()).map(|value| (name, value));
        let host = || value("SIDEJOB_HOST").map(|(name, host)| (name, format!("redis://{host}")));
        value("SIDEJOB_URL").or_else(host)
    }

    /// The prefix of every key, including braces.
    pub fn namespace(&self) -> &str {
        &self.settings.namespace
    }

    /// What precedes the keys of tasks, without the colon after it. It is empty by default, so that they are SideJob's own,
    /// except in a Cluster.
    pub fn tasks_prefix(&self) -> &str {
        match self.topology {
            Topology::Cluster if self.settings.tasks.is_empty() => CLUSTER_TASKS,
            _ => &self.settings.tasks,
        }
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
        as_span(self.settings.lease)
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
    fn params(&self) -> PrintedParams {
        let mut params = PrintedParams::default();
        if let Topology::Sentinel { login, .. } = &self.topology {
            if let Some(user) = &login.user {
                params.add("sentinel_user", escaped(user, ""));
            }
            if login.password.is_some() {
                params.add("sentinel_password", MASK);
            }
        }
        if self.tls && self.topology != Topology::Single {
            params.add("tls", true);
        }
        if let Some(ca) = &self.ca {
            params.add("ca", escaped(&ca.display().to_string(), "/"));
        }
        self.settings.print(&mut params);
        params
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        write!(f, "{}://{}{}", self.scheme(), self.credentials, servers.join(","))?;
        if let Topology::Sentinel { service, .. } = &self.topology {
            write!(f, "/{}", escaped(service, ""))?;
        }
        if self.db != 0 {
            write!(f, "/{}", self.db)?;
        }
        write!(f, "{}", self.params())
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

/// Percent-encodes a text. Braces stay, because most namespaces have them.
fn escaped(text: &str, also: &str) -> String {
    percent::encode(text, &format!("{{}}:{also}"))
}
