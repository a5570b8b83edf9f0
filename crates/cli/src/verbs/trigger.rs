//! `cronhold trigger`: sends a trigger, which becomes a run at once or by the batching policy of its job.

use std::io::Write;

use clap::Args;
use cronhold_api::TriggerBody;

use super::run::args;
use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// Trigger a job: run it now, or when its batching policy allows
#[derive(Debug, Args)]
#[command(after_help = "\
Without `batching` in the job, a trigger creates a run at once. With it, triggers collect until runs have
ended, and one run can stand for many of them. `cronhold triggers` shows those that wait.

A job receives each id once in 24 hours: a trigger that is sent again has no effect. Without --id, every
trigger has a new id.

Examples:
  cronhold trigger deploy
  cronhold trigger build --id 'repo@4711' ref=main")]
pub(crate) struct TriggerArgs {
    /// Job id
    #[arg(value_name = "JOB")]
    job: String,
    /// Args of the run
    #[arg(value_name = "NAME=VALUE")]
    args: Vec<String>,
    /// Id of the trigger, 1 to 200 bytes [default: a new one]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TriggerArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let body = TriggerBody { id: self.id.clone(), args: args(&self.args)? };
        let receipt = remote.client.trigger(&self.job, &body);
        let receipt = receipt.map_err(|error| remote.failure_about(&self.job, error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&receipt, out)?,
            None => render::triggers::receipt(&receipt, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
