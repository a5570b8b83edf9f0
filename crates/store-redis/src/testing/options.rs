//! Options of a test server.

/// Options of a test server. By default it has no persistence, no password and no memory limit.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Whether every write is on disk before the reply.
    pub aof: bool,
    /// Memory limit in bytes, and the eviction policy, such as `noeviction` or `allkeys-lru`.
    pub maxmemory: Option<(u64, &'static str)>,
    /// The password of the user `default`.
    pub password: Option<&'static str>,
    /// Users with their rules, such as `user worker on >secret ~* &* +@all`.
    pub users: Vec<String>,
    /// Whether the server accepts only TLS. The certificate is for `localhost` and `127.0.0.1`.
    pub tls: bool,
    /// Port of the master, if this server is a replica.
    pub replica_of: Option<u16>,
    /// Further settings, such as `("min-replicas-to-write", "1")`.
    pub settings: Vec<(&'static str, String)>,
}

impl ServerOptions {
    /// The lines of the configuration, without port and folder.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec!["save \"\"".to_owned(), "bind 127.0.0.1".to_owned(), "daemonize no".to_owned()];
        lines.push(format!("appendonly {}", if self.aof { "yes" } else { "no" }));
        lines.push("appendfsync always".to_owned());
        // Start replication immediately instead of waiting for more replicas.
        lines.push("repl-diskless-sync-delay 0".to_owned());
        if let Some((bytes, policy)) = self.maxmemory {
            lines.push(format!("maxmemory {bytes}"));
            lines.push(format!("maxmemory-policy {policy}"));
        }
        if let Some(password) = self.password {
            lines.push(format!("requirepass {password}"));
            lines.push(format!("masterauth {password}"));
        }
        if let Some(port) = self.replica_of {
            lines.push(format!("replicaof 127.0.0.1 {port}"));
        }
        lines.extend(self.users.iter().cloned());
        lines.extend(self.settings.iter().map(|(name, value)| format!("{name} {value}")));
        lines
    }
}
