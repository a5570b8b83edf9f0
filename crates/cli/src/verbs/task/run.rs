//! `cronhold task run`: requests a step.

use std::io::Write;

use clap::Args;
use cronhold_api::TaskRunBody;

use super::print_changed;
use super::queue::time;
use crate::remote::RemoteDaemon;
use crate::render::OutputFormat;
use crate::{CliError, ExitStatus};

/// Request a step of a task
#[derive(Debug, Args)]
#[command(after_help = "\
A task that has failed, is being terminated or was terminated runs only with --force. A step that
begins before --at stands for the delayed one.

Examples:
  cronhold task run 12
  cronhold task run 12 --at 18:30
  cronhold task run load-eu --force")]
pub(crate) struct TaskRunArgs {
    /// Task: its id or an alias
    #[arg(value_name = "TASK")]
    task: String,
    /// Run the task whatever its status
    #[arg(long)]
    force: bool,
    /// When the step is due, in UTC: 2h, 18:30, tomorrow or 2026-11-01T02:00:00Z [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskRunArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let at = self.at.as_deref().map(|at| time("--at", at, remote)).transpose()?;
        let body = TaskRunBody { force: self.force, at, parent: false };
        let detail = remote.client.run_task(&self.task, &body).map_err(|error| remote.failure(error))?;
        let line = format!("task {} is {}", detail.task.id, detail.task.status);
        print_changed(&detail, &line, self.output, out)
    }
}
