//! `cronhold store`: what can be done with a store as a whole. The binary does it, because only the binary knows which
//! stores there are.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Look after the place where jobs and runs are kept
#[derive(Debug, Args)]
pub struct Store {
    /// What is to be done
    #[command(subcommand)]
    pub verb: StoreVerb,
}

/// What can be done with a store as a whole.
#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    /// Copy a store into a file, also while a daemon uses it
    Backup(Backup),
}

/// A copy of a store.
#[derive(Debug, Args)]
#[command(after_help = "\
The copy is the store at one moment, complete and checked, and can be used in its place. A file
that is there is not overwritten, and one that could not be finished is not left behind.

This copies SQLite stores. A Redis store is copied by what Redis has for it: BGSAVE writes its
snapshot, and the file of its log can be copied.

Examples:
  cronhold store backup /var/backups/cronhold.db
  cronhold store backup --data /var/lib/cronhold /var/backups/cronhold.db")]
pub struct Backup {
    /// The file to make
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Directory of the daemon's own files [default: $CRONHOLD_DATA, $XDG_DATA_HOME/cronhold, or
    /// ~/.local/share/cronhold]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where jobs and runs are kept [default: $CRONHOLD_STORE, or sqlite:DIR/cronhold.db in the directory of --data]
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub store: Option<String>,
}
