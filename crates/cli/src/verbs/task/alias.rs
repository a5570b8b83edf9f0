//! `cronhold task alias`: adds and removes aliases.

use std::io::Write;

use clap::Args;
use cronhold_api::AliasesBody;

use super::print_changed;
use crate::remote::RemoteDaemon;
use crate::render::OutputFormat;
use crate::{CliError, ExitStatus};

/// Add an alias to a task, or remove one
#[derive(Debug, Args)]
#[command(after_help = "\
An alias begins with a letter and belongs to one task. Every command accepts it in the place of the
id.

Examples:
  cronhold task alias 12 load-eu
  cronhold task alias 12 --remove load-eu")]
pub(crate) struct TaskAliasArgs {
    /// Task: its id or an alias
    #[arg(value_name = "TASK")]
    task: String,
    /// New aliases
    #[arg(value_name = "ALIAS", required_unless_present = "remove")]
    add: Vec<String>,
    /// Alias that is removed; repeatable
    #[arg(long, value_name = "ALIAS")]
    remove: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskAliasArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let body = AliasesBody { add: self.add.clone(), remove: self.remove.clone() };
        let detail = remote.client.alias_task(&self.task, &body).map_err(|error| remote.failure(error))?;
        let line = match detail.aliases.as_slice() {
            [] => format!("task {} has no aliases", detail.task.id),
            aliases => format!("aliases of task {}: {}", detail.task.id, aliases.join(", ")),
        };
        print_changed(&detail, &line, self.output, out)
    }
}
