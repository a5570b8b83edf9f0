//! `cronhold why`: explains why a job runs or does not run, now or at a given time.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus};

/// Explain why a job runs or does not run, now or at a given time
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold why backup
  cronhold why backup 2026-11-01T02:30:00Z
  cronhold why backup 2h")]
pub(crate) struct WhyArgs {
    /// Job id
    #[arg(value_name = "JOB")]
    job: String,
    /// Time to ask about: an instant, a date, a time of day, or an age such as 2h [default: now]
    #[arg(value_name = "TIME", allow_hyphen_values = true)]
    time: Option<String>,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl WhyArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let at = self.shown.clock(remote.session)?.read_some("TIME", self.time.as_deref())?;
        let why = remote.client.why(&self.job, at).map_err(|error| remote.failure_about(&self.job, error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&why, out)?,
            None => render::explanation::lines(&why.lines, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
