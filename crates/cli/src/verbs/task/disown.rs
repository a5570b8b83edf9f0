//! `cronhold task disown`: takes a child from its parent.

use std::io::Write;

use clap::Args;

use super::print_changed;
use crate::remote::RemoteDaemon;
use crate::render::OutputFormat;
use crate::{CliError, ExitStatus};

/// Take a child from its parent
#[derive(Debug, Args)]
pub(crate) struct TaskDisownArgs {
    /// Parent: its id or an alias
    #[arg(value_name = "PARENT")]
    parent: String,
    /// Name of the child
    #[arg(value_name = "NAME")]
    name: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskDisownArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let detail = remote.client.disown_task(&self.parent, &self.name).map_err(|error| remote.failure(error))?;
        let line = format!("`{}` is no longer a child of task {}", self.name, detail.task.id);
        print_changed(&detail, &line, self.output, out)
    }
}
