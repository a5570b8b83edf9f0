//! `cronhold task terminate`: ends a task.

use std::io::Write;

use clap::Args;

use super::print_changed;
use crate::remote::RemoteDaemon;
use crate::render::OutputFormat;
use crate::{CliError, ExitStatus};

/// End a task: its worker makes a last step, the shutdown
#[derive(Debug, Args)]
pub(crate) struct TaskTerminateArgs {
    /// Task: its id or an alias
    #[arg(value_name = "TASK")]
    task: String,
    /// End all descendants too
    #[arg(long)]
    recursive: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskTerminateArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let detail = remote.client.terminate_task(&self.task, self.recursive);
        let detail = detail.map_err(|error| remote.failure(error))?;
        let line = format!("task {} is {}", detail.task.id, detail.task.status);
        print_changed(&detail, &line, self.output, out)
    }
}
