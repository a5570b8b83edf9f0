//! `cronhold rerun`: a finished run once more, as a new run that is linked to it.

use std::io::Write;

use clap::Args;

use crate::remote::Remote;
use crate::render::{self, Shown};
use crate::{Exit, Failure, follow};

/// Run a finished run once more, with the same args and for the same time
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold rerun backup
  cronhold rerun backup#42 --anew --wait")]
pub(crate) struct Rerun {
    /// The run: its id, job#number, or a job's name for its latest
    #[arg(value_name = "RUN")]
    run: String,
    /// Do what the job says now, and not what it said then
    #[arg(long)]
    anew: bool,
    /// Wait until it is over, and show what it writes; the exit code is then 0 only when it succeeded
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Rerun {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        let wall = self.shown.wall(remote.session)?;
        let made = remote.client.rerun(&self.run, self.anew);
        let made = made.map_err(|error| remote.failure_about(&self.run, error))?;
        let run = follow::named(remote, &made.id)?;
        if self.wait {
            return follow::to_end(remote, &run, &self.shown, out, err);
        }
        render::run::answer(&run, &self.shown, &wall, remote.session.colours, out)?;
        Ok(follow::acceptance(&run))
    }
}
