//! `cronhold show`: one job or one run in detail.

use std::io::Write;

use clap::Args;

use crate::follow;
use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus};

/// Show a job or a run in detail
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold show backup
  cronhold show backup -o json
  cronhold show backup#42")]
pub(crate) struct ShowArgs {
    /// Job id, run id, or `job#number`
    #[arg(value_name = "JOB|RUN")]
    job: String,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl ShowArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        if follow::is_run(&self.job) {
            let run = remote.client.run(&self.job).map_err(|error| remote.failure_about(&self.job, error))?;
            match self.shown.encoding() {
                Some(encoding) => encoding.write(&run, out)?,
                None => render::run::detail(&run, &clock, remote.session.colours, out)?,
            }
            return Ok(ExitStatus::Done);
        }
        let (job, _) = remote.client.job(&self.job).map_err(|error| remote.failure_about(&self.job, error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&job, out)?,
            None => render::job::text(&job, &clock, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
