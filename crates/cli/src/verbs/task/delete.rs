//! `cronhold task delete`: deletes a task and its descendants.

use std::io::Write;

use clap::Args;
use serde_json::json;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// Delete a task and its descendants, all of which must be terminated
#[derive(Debug, Args)]
pub(crate) struct TaskDeleteArgs {
    /// Task: its id or an alias
    #[arg(value_name = "TASK")]
    task: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskDeleteArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        remote.client.delete_task(&self.task).map_err(|error| remote.failure(error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&json!({"deleted": self.task}), out)?,
            None => render::line(&format!("deleted task {}", render::visible(&self.task)), out)?,
        }
        Ok(ExitStatus::Done)
    }
}
