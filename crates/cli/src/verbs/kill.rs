//! `cronhold kill`: a run's program is ended at once.

use std::io::Write;

use clap::Args;

use crate::remote::Remote;
use crate::render::{self, Shown};
use crate::{Exit, Failure, follow};

/// Kill a run: SIGKILL to its whole process group, at once
#[derive(Debug, Args)]
#[command(after_help = "\
`cronhold stop` lets the program put its things in order first.

Examples:
  cronhold kill backup#42 --wait")]
pub(crate) struct Kill {
    /// The run: its id, job#number, or a job's name for its latest
    #[arg(value_name = "RUN")]
    run: String,
    /// Wait until it has ended
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Kill {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        let wall = self.shown.wall(remote.session)?;
        let mut run = remote
            .client
            .kill(&self.run)
            .map_err(|error| follow::refused(remote, &self.run, follow::RUNNING, error))?;
        if self.wait {
            run = follow::finished(remote, &run.id, err)?;
        }
        render::run::answer(&run, &self.shown, &wall, remote.session.colours, out)?;
        Ok(Exit::Done)
    }
}
