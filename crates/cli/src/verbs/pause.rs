//! `cronhold pause`: schedules start nothing until `cronhold resume`.

use std::io::Write;

use clap::Args;
use cronhold_api::PauseChange;
use cronhold_api::client::{CallError, JobFilter};

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// Argument that means all jobs.
pub(crate) const ALL: &str = "all";

/// Pause a job, or all jobs
#[derive(Debug, Args)]
#[command(after_help = "\
While a job is paused, its schedules start nothing. Active runs continue, and `cronhold run` still
works. When the pause ends, the job's `catch_up` decides about missed occurrences.

Examples:
  cronhold pause backup --why 'the disk is full'
  cronhold pause all --why maintenance")]
pub(crate) struct PauseArgs {
    /// Job id, or `all`
    #[arg(value_name = "JOB|all")]
    job: String,
    /// Reason, shown by `cronhold why` and `cronhold list`
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl PauseArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let paused = remote.client.pause(one(&self.job), &self.why);
        let is_new = paused.map_err(|error| remote.failure_about(&self.job, error))?;
        let text = match (self.output.encoding(), one(&self.job)) {
            (Some(encoding), job) => {
                encoding.write(&state(job, remote).map_err(|error| remote.failure(error))?, out)?;
                return Ok(ExitStatus::Done);
            }
            (None, Some(job)) if !is_new => format!("`{job}` is already paused; nothing to do"),
            (None, None) if !is_new => "everything is already paused; nothing to do".to_owned(),
            (None, Some(job)) => format!("paused `{job}`; `cronhold resume {job}` ends it"),
            (None, None) => "paused everything; `cronhold resume all` ends it".to_owned(),
        };
        render::line(&text, out)?;
        Ok(ExitStatus::Done)
    }
}

/// The current pause of a job, or of everything, in the form that the event feed uses.
pub(crate) fn state(job: Option<&str>, remote: &RemoteDaemon<'_>) -> Result<PauseChange, CallError> {
    let pause = match job {
        Some(job) => remote.client.job(job)?.0.job.pause,
        None => remote.client.job_page(&JobFilter::default(), None, 1)?.pause,
    };
    Ok(PauseChange { job: job.map(str::to_owned), pause })
}

/// The job id, or `None` for `all`.
pub(crate) fn one(given: &str) -> Option<&str> {
    Some(given).filter(|given| *given != ALL)
}
