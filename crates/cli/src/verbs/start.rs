//! `cronhold start`: a run that waits for its time or its conditions waits no longer.

use std::io::Write;

use clap::Args;

use crate::remote::Remote;
use crate::render::{self, Shown};
use crate::{Exit, Failure, follow};

/// Let a run wait no longer for its time, or for its conditions
#[derive(Debug, Args)]
#[command(after_help = "\
A run that waits for its time goes on to wait for its conditions; one that waits for them is
started.

Examples:
  cronhold start backup#42
  cronhold start reports/prices --wait")]
pub(crate) struct Start {
    /// The run: its id, job#number, or a job's name for its latest
    #[arg(value_name = "RUN")]
    run: String,
    /// Wait until it is over, and show what it writes; the exit code is then 0 only when it succeeded
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Start {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        let wall = self.shown.wall(remote.session)?;
        let run = remote
            .client
            .start(&self.run)
            .map_err(|error| follow::refused(remote, &self.run, follow::WAITING, error))?;
        if self.wait {
            return follow::to_end(remote, &run, &self.shown, out, err);
        }
        render::run::answer(&run, &self.shown, &wall, remote.session.colours, out)?;
        Ok(Exit::Done)
    }
}
