//! `cronhold start`: starts a scheduled or waiting run now.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Start a scheduled or waiting run now
#[derive(Debug, Args)]
#[command(after_help = "\
A run that waits for its time continues with its conditions; a run that waits for its conditions
starts.

Examples:
  cronhold start backup#42
  cronhold start reports/prices --wait")]
pub(crate) struct StartArgs {
    /// Run: its id, JOB#NUMBER, or a job for its first run that has not started
    #[arg(value_name = "RUN")]
    run: String,
    /// Wait for the run and its retries and print their output; exit with 0 only if the last one succeeds
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl StartArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let run = remote.client.start(&self.run).map_err(|error| follow::refused(remote, &self.run, error))?;
        if self.wait {
            return follow::to_end(remote, &run, &self.shown, out, err);
        }
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        Ok(ExitStatus::Done)
    }
}
