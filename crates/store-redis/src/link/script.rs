//! Scripts: sent once to a server, and called by their hash from then on.

use redis::Cmd;

/// A script and its hash.
#[derive(Debug)]
pub(crate) struct Script {
    source: String,
    sha: String,
}

impl Script {
    /// A script that is made of parts, in their order.
    pub(crate) fn new(parts: &[&str]) -> Self {
        let source = parts.join("\n");
        let sha = redis::Script::new(&source).get_hash().to_owned();
        Self { source, sha }
    }

    /// The name by which a server knows it.
    pub(crate) fn sha(&self) -> &str {
        &self.sha
    }

    /// The command that makes it known.
    pub(super) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.source.as_bytes());
        command
    }

    /// The command that calls it.
    pub(super) fn call(&self, keys: &[String], args: &[Vec<u8>]) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.sha.as_bytes()).arg(keys.len());
        for key in keys {
            command.arg(key.as_bytes());
        }
        for arg in args {
            command.arg(arg.as_slice());
        }
        command
    }
}
