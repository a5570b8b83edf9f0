//! `cronhold resume`: the end of a pause.

use std::io::Write;

use clap::Args;

use super::pause::{one, state};
use crate::remote::Remote;
use crate::render::{self, Format};
use crate::{Exit, Failure};

/// End the pause of a job, or of everything
#[derive(Debug, Args)]
#[command(after_help = "\
A job that was paused by itself stays paused when everything is resumed, and the other way round.

Examples:
  cronhold resume backup
  cronhold resume all")]
pub(crate) struct Resume {
    /// Id of the job, or `all`
    #[arg(value_name = "JOB|all")]
    job: String,
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

impl Resume {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, _: &mut dyn Write) -> Result<Exit, Failure> {
        let resumed = remote.client.resume(one(&self.job));
        resumed.map_err(|error| remote.failure_about(&self.job, error))?;
        let text = match (self.output.encoding(), one(&self.job)) {
            (Some(encoding), job) => {
                encoding.write(&state(job, remote).map_err(|error| remote.failure(error))?, out)?;
                return Ok(Exit::Done);
            }
            (None, Some(job)) => format!("resumed `{job}`"),
            (None, None) => "resumed everything".to_owned(),
        };
        render::line(&text, out)?;
        Ok(Exit::Done)
    }
}
