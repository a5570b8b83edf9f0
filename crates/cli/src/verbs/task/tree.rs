//! `cronhold task tree`: a task and its descendants.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// Show a task and its descendants, at most 1,000 tasks
#[derive(Debug, Args)]
pub(crate) struct TaskTreeArgs {
    /// Task: its id or an alias
    #[arg(value_name = "TASK")]
    task: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskTreeArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let tree = remote.client.task_tree(&self.task).map_err(|error| remote.failure(error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&tree, out)?,
            None => render::tasks::tree(&tree, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
