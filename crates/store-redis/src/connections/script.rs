//! Lua scripts. A script is loaded once per connection and then called by its hash.

use cronhold_store::rollback::CommitHold;
use redis::Cmd;

/// Room in a call for what precedes the arguments: their number, and bytes.
const CALL_HEAD_ARGS: usize = 8;
const CALL_HEAD: usize = 256;

/// The source of a script and its SHA-1.
#[derive(Debug)]
pub(crate) struct Script {
    source: String,
    sha: String,
    /// Whether the first argument is sent with the id of the server process.
    names_server: bool,
}

impl Script {
    /// Joins parts in this order into one script.
    pub(crate) fn new(parts: &[&str]) -> Self {
        let source = parts.join("\n");
        let sha = redis::Script::new(&source).get_hash().to_owned();
        Self { source, sha, names_server: false }
    }

    /// A script on the keys of a namespace: joins `prelude.lua` and these parts. Its first argument is the namespace. The
    /// connection appends the id of the server process to it, so that the script can compare it with the process that
    /// the latest commits were made on.
    pub(crate) fn on_namespace(parts: &[&str]) -> Self {
        let contact = format!("local CONTACT_MILLIS = {}", CommitHold::after_restart().micros() / 1_000);
        let mut all = vec![contact.as_str(), include_str!("../scripts/prelude.lua")];
        all.extend(parts);
        Self { names_server: true, ..Self::new(&all) }
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

    /// `EVALSHA` with these keys and arguments, for the server process with this id.
    pub(super) fn call(&self, keys: &[String], args: &[Vec<u8>], server_id: &str) -> Cmd {
        let size = args.iter().map(Vec::len).sum::<usize>() + self.sha.len() + CALL_HEAD;
        let mut command = Cmd::with_capacity(args.len() + CALL_HEAD_ARGS, size);
        command.arg("EVALSHA").arg(self.sha.as_bytes()).arg(keys.len());
        for key in keys {
            command.arg(key.as_bytes());
        }
        let mut args = args.iter();
        if self.names_server
            && let Some(namespace) = args.next()
        {
            command.arg([namespace.as_slice(), b" ", server_id.as_bytes()].concat());
        }
        for arg in args {
            command.arg(arg.as_slice());
        }
        command
    }
}
