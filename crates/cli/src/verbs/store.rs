//! `cronhold store`: operations on a whole store. The binary implements them, because only it knows the store crates.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Maintain the store of jobs and runs
#[derive(Debug, Args)]
pub struct StoreCommand {
    /// Operation
    #[command(subcommand)]
    pub verb: StoreVerb,
}

/// Operations on a whole store.
#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    /// Copy a store to a file, also while a daemon uses it
    Backup(BackupArgs),
}

/// Arguments of `cronhold store backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
The copy is a consistent, checked snapshot that can replace the store. An existing file is not
overwritten, and a partial file is not left behind.

This command copies SQLite stores. Use Redis's own tools for a Redis store: BGSAVE writes a snapshot,
and the append-only file can be copied.

Examples:
  cronhold store backup /var/backups/cronhold.db
  cronhold store backup --data /var/lib/cronhold /var/backups/cronhold.db")]
pub struct BackupArgs {
    /// File to create
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Data directory of the daemon [default: $CRONHOLD_DATA, $XDG_DATA_HOME/cronhold, or
    /// ~/.local/share/cronhold]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// URL of the store [default: $CRONHOLD_STORE, or sqlite:DIR/cronhold.db in the directory of --data]
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub store: Option<String>,
}
