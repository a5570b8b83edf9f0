//! `cronhold keeper`: options of the keeper process. Only the daemon starts it.

use std::path::PathBuf;

use clap::Args;

/// Run the keeper process that owns running programs; started by `cronhold up`
#[derive(Debug, Args)]
#[command(after_help = "\
The daemon starts the keeper of its data directory and reconnects to it after a restart; you do not
need to call this. If no daemon is running, the keeper exits 10 s after the last program.")]
pub struct KeeperArgs {
    /// Data directory of the daemon; the keeper's files are in `keeper` below it
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
}
