//! `cronhold stop`: a run's program is asked to end, and made to when it does not.

use std::io::Write;

use clap::Args;
use cronhold_api::Run;
use cronhold_api::client::{CallError, Client};

use crate::remote::Remote;
use crate::render::{self, Shown};
use crate::{Exit, Failure, follow};

/// Stop a run: signal, grace period, then SIGKILL
#[derive(Debug, Args)]
#[command(after_help = "\
Signal and grace period are those of the job (`stop: {signal: SIGTERM, grace: 30s}`).

Examples:
  cronhold stop backup
  cronhold stop backup#42 --wait")]
pub(crate) struct Stop {
    #[command(flatten)]
    target: Target,
}

/// A run whose program is to end.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The run: its id, job#number, or a job's name for its latest
    #[arg(value_name = "RUN")]
    run: String,
    /// Wait until it has ended
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Stop {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        self.target.end(Client::stop, remote, out, err)
    }
}

impl Target {
    /// Asks for the end of the run in one way or another, and waits for it if that is wanted.
    pub(super) fn end(
        &self,
        ask: impl FnOnce(&Client, &str) -> Result<Run, CallError>,
        remote: &Remote<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<Exit, Failure> {
        let wall = self.shown.wall(remote.session)?;
        let asked = ask(&remote.client, &self.run);
        let mut run = asked.map_err(|error| follow::refused(remote, &self.run, follow::RUNNING, error))?;
        if self.wait {
            run = follow::finished(remote, &run.id, err)?;
        }
        render::run::answer(&run, &self.shown, &wall, remote.session.colours, out)?;
        Ok(Exit::Done)
    }
}
