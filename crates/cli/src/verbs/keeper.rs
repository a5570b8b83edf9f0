//! `cronhold keeper`: what the keeper is told. The binary starts it, and only the daemon asks for it.

use std::path::PathBuf;

use clap::Args;

use crate::LogArgs;

/// Own running programs, so that they outlive the daemon; started by `cronhold up`
#[derive(Debug, Args)]
#[command(after_help = "\
The daemon starts the keeper of its data directory by itself and takes it up again after a restart;
there is no need to call this. It ends 10 s after the last program, when no daemon is there.")]
pub struct Keeper {
    /// Directory of the daemon's own files; the keeper's are in `keeper` below it
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// What is logged, and in which form.
    #[command(flatten)]
    pub log: LogArgs,
}
