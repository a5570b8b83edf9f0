//! `cronhold rerun`: creates a new run with the time and args of a finished one.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Run a finished run again, with the same args and nominal time
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold rerun backup
  cronhold rerun backup#42 --current --wait")]
pub(crate) struct RerunArgs {
    /// Run: its id, JOB#NUMBER, or a job for its running run, else the last one that started
    #[arg(value_name = "RUN")]
    run: String,
    /// Use the job's current definition instead of the one at the time of the run
    #[arg(long)]
    current: bool,
    /// Wait for the run and its retries and print their output; exit with 0 only if the last one succeeds
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl RerunArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let made = remote.client.rerun(&self.run, self.current);
        let made = made.map_err(|error| follow::refused(remote, &self.run, error))?;
        let run = follow::named(remote, &made.id)?;
        if self.wait {
            return follow::to_end(remote, &run, &self.shown, out, err);
        }
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        Ok(follow::exit_of_created(&run))
    }
}
