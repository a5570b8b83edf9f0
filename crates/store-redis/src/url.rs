//! How a Redis store is named: where its servers are, who asks, and how Cronken's keys are kept. Apart from the line
//! that uses it, because the command line reads and prints it without ever connecting.

mod read;
mod settings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;

use cronhold_schedule::TextError;

pub(crate) use settings::{LineFormat, UrlSettings};

/// Stands where a password would.
const MASK: &str = "***";

/// The port of a server of which none is said.
pub(crate) const PORT: u16 = 6379;

/// The port of a Sentinel of which none is said.
pub(crate) const SENTINEL_PORT: u16 = 26379;

/// The name of a Redis store. Passwords are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    /// How the server that takes writes is found.
    pub(crate) topology: Topology,
    /// The server itself, or those that know where it is.
    pub(crate) servers: Vec<ServerAddress>,
    /// Whether lines are encrypted.
    pub(crate) tls: bool,
    /// Who signs the servers' certificates; those that the system trusts otherwise.
    pub(crate) ca: Option<PathBuf>,
    /// Who asks; Redis' `default` otherwise.
    pub(crate) user: Option<String>,
    /// The password.
    pub(crate) password: Option<String>,
    /// Which database.
    pub(crate) db: u32,
    /// How keys are kept.
    pub(crate) settings: UrlSettings,
}

/// How the server that takes writes is found.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Topology {
    /// It is the one that is named.
    Single,
    /// Sentinels know it.
    Sentinel {
        /// The name under which they know it.
        service: String,
        /// Who asks the Sentinels.
        user: Option<String>,
        /// The Sentinels' password.
        password: Option<String>,
    },
    /// It is the one of a Cluster that has the slot of our keys.
    Cluster,
}

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ServerAddress {
    /// A name or an address; without brackets.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
}

impl RedisUrl {
    /// Reads a URL.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        read::read(text)
    }

    /// Whether it says that nodes of Cronken run the same jobs.
    pub fn names_peers(&self) -> bool {
        self.settings.peers == Some(true)
    }

    /// The word before the colon.
    fn scheme(&self) -> &'static str {
        match self.topology {
            Topology::Single if self.tls => "rediss",
            Topology::Single => "redis",
            Topology::Sentinel { .. } => "redis+sentinel",
            Topology::Cluster => "redis+cluster",
        }
    }

    /// What differs from what holds otherwise, in the order in which it is described.
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

/// A text as it can stand in a URL. Braces are left as they are, because namespaces are full of them.
pub(crate) fn escaped(text: &str, also: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        let letter = char::from(byte);
        if letter.is_ascii_alphanumeric() || "-._~{}:".contains(letter) || also.contains(letter) {
            written.push(letter);
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}
