//! `cronhold show`: one job in detail.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus};

/// Show a job in detail
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold show backup
  cronhold show backup -o json")]
pub(crate) struct ShowArgs {
    /// Job id
    #[arg(value_name = "JOB")]
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
        let (job, _) = remote.client.job(&self.job).map_err(|error| remote.failure_about(&self.job, error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&job, out)?,
            None => render::job::text(&job, &clock, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
