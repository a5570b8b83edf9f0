//! How a server for a test is set up.

/// How a server for a test is set up; by default it keeps nothing on disk, has no password and no limit.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Whether every write is on disk before it is answered.
    pub aof: bool,
    /// The most memory it may use, in bytes, and what it does then, such as `noeviction` or `allkeys-lru`.
    pub maxmemory: Option<(u64, &'static str)>,
    /// The password of the user `default`.
    pub password: Option<&'static str>,
    /// Users with their rules, such as `user worker on >secret ~* &* +@all`.
    pub users: Vec<String>,
    /// Whether it speaks TLS alone. The certificate is for `localhost` and `127.0.0.1`.
    pub tls: bool,
    /// The port of the server that it is a replica of.
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
        // A replica has to be there soon, not when others may have come as well.
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
