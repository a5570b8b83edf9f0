//! `cronhold holes`: searches for occurrences without a record. There should never be any.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus};

/// Search for occurrences without an outcome
#[derive(Debug, Args)]
#[command(after_help = "\
Exits with 1 if it finds one, or if a stored record cannot be read, so that it cannot tell.

Examples:
  cronhold holes
  cronhold holes backup --since 2026-11-01")]
pub(crate) struct HolesArgs {
    /// Job id [default: all jobs]
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// Start of the period: an instant, a date, or an age such as 3d
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,
    /// End of the period [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl HolesArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let since = clock.read_some("--since", self.since.as_deref())?;
        let until = clock.read_some("--until", self.until.as_deref())?;
        if since.is_some_and(|since| since >= until.unwrap_or(clock.now)) {
            return Err(CliError::usage("--since is not before --until", "use a start that is earlier than the end"));
        }
        let asked = remote.client.holes(self.job.as_deref(), since, until);
        let holes = asked.map_err(|error| match &self.job {
            Some(job) => remote.failure_about(job, error),
            None => remote.failure(error),
        })?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&holes, out)?,
            None => render::explanation::holes(&holes, &clock, remote.session.colours, out)?,
        }
        render::jobs::unreadable(&holes.unreadable, err)?;
        let is_complete = holes.found == 0 && holes.unreadable.is_empty();
        Ok(if is_complete { ExitStatus::Done } else { ExitStatus::Refused })
    }
}
