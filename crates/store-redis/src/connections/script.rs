//! Lua scripts. A script is loaded once per connection and then called by its hash.

use redis::Cmd;

/// The source of a script and its SHA-1.
#[derive(Debug)]
pub(crate) struct Script {
    source: String,
    sha: String,
}

impl Script {
    /// Joins parts in this order into one script.
    pub(crate) fn new(parts: &[&str]) -> Self {
        let source = parts.join("\n");
        let sha = redis::Script::new(&source).get_hash().to_owned();
        Self { source, sha }
    }

    /// The hash by which the server finds the script.
    pub(crate) fn sha(&self) -> &str {
        &self.sha
    }

    /// The command that loads the script into the server.
    pub(super) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.source.as_bytes());
        command
    }

    /// `EVALSHA` with these keys and arguments.
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
