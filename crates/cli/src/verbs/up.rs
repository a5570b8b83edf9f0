//! `cronhold up`: what the daemon is told. The binary starts it, because only the binary puts everything together.

use std::path::PathBuf;

use clap::Args;

/// Start the daemon: run jobs when they are due
#[derive(Debug, Args)]
#[command(after_help = "\
The daemon runs until it gets SIGTERM or SIGINT (Ctrl-C); a second one ends it at once. Either way
nothing is lost: programs go on, and at its next start it takes up what was not over.

This version runs programs of the kinds shell, exec and noop; a run with any other ends in error.

Examples:
  cronhold up --jobs jobs/
  cronhold up --jobs jobs/ --data /var/lib/cronhold --timezone Europe/Berlin
  cronhold up --store sqlite:/var/lib/cronhold/cronhold.db --quiet")]
pub struct Up {
    /// Directory of the daemon's own files; made if it is not there [default: $XDG_DATA_HOME/cronhold, or
    /// ~/.local/share/cronhold]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Directory of job files. Jobs whose file is gone are removed; without it, the daemon runs the jobs that are stored
    #[arg(long, value_name = "DIR")]
    pub jobs: Option<PathBuf>,
    /// Where jobs and runs are kept [default: sqlite:DIR/cronhold.db in the directory of --data]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// What people call this node [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Zone of schedules that name none
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub timezone: String,
    /// Tell of trouble only: failures, errors, and what is wrong with jobs or the store
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Tell of everything that changes: each state of each run, each job
    #[arg(short, long)]
    pub verbose: bool,
}
