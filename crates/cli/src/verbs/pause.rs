//! `cronhold pause`: nothing starts by itself, until someone resumes.

use std::io::Write;

use clap::Args;
use cronhold_api::PauseChange;
use cronhold_api::client::{CallError, JobFilter};

use crate::remote::Remote;
use crate::render::{self, Format};
use crate::{Exit, Failure};

/// What stands for every job.
pub(crate) const ALL: &str = "all";

/// Let a job, or everything, start nothing by itself
#[derive(Debug, Args)]
#[command(after_help = "\
What is due meanwhile waits for the end of the pause, and then `catch_up` decides about it. What
runs goes on, and runs can still be started by hand.

Examples:
  cronhold pause backup --why 'the disk is full'
  cronhold pause all --why maintenance")]
pub(crate) struct Pause {
    /// Id of the job, or `all`
    #[arg(value_name = "JOB|all")]
    job: String,
    /// Why, for those who wonder later
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

impl Pause {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, _: &mut dyn Write) -> Result<Exit, Failure> {
        let paused = remote.client.pause(one(&self.job), &self.why);
        paused.map_err(|error| remote.failure_about(&self.job, error))?;
        let text = match (self.output.encoding(), one(&self.job)) {
            (Some(encoding), job) => {
                encoding.write(&state(job, remote).map_err(|error| remote.failure(error))?, out)?;
                return Ok(Exit::Done);
            }
            (None, Some(job)) => format!("paused `{job}`; `cronhold resume {job}` ends it"),
            (None, None) => "paused everything; `cronhold resume all` ends it".to_owned(),
        };
        render::line(&text, out)?;
        Ok(Exit::Done)
    }
}

/// Whether a job is paused now, or everything, as programs are told: the same that the feed tells them.
pub(crate) fn state(job: Option<&str>, remote: &Remote<'_>) -> Result<PauseChange, CallError> {
    let pause = match job {
        Some(job) => remote.client.job(job)?.0.job.pause,
        None => remote.client.job_page(&JobFilter::default(), None, 1)?.pause,
    };
    Ok(PauseChange { job: job.map(str::to_owned), pause })
}

/// The job that is meant; nothing, when it is everything.
pub(crate) fn one(given: &str) -> Option<&str> {
    Some(given).filter(|given| *given != ALL)
}
