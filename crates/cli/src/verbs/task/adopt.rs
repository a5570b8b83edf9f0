//! `cronhold task adopt`: makes a task the child of another.

use std::io::Write;

use clap::Args;
use cronhold_api::{AdoptBody, TaskReference};

use super::print_changed;
use crate::remote::RemoteDaemon;
use crate::render::OutputFormat;
use crate::{CliError, ExitStatus};

/// Make a task without a parent the child of another
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold task adopt 12 13 total      task 13 becomes the child `total` of task 12")]
pub(crate) struct TaskAdoptArgs {
    /// Parent: its id or an alias
    #[arg(value_name = "PARENT")]
    parent: String,
    /// Child: its id or an alias
    #[arg(value_name = "CHILD")]
    child: String,
    /// Name among the children of the parent
    #[arg(value_name = "NAME")]
    name: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskAdoptArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let body = AdoptBody { child: TaskReference::Text(self.child.clone()), name: self.name.clone() };
        let detail = remote.client.adopt_task(&self.parent, &body).map_err(|error| remote.failure(error))?;
        let line = format!("task {} is the child `{}` of task {}", self.child, self.name, detail.task.id);
        print_changed(&detail, &line, self.output, out)
    }
}
