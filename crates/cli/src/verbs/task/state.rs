//! `cronhold task state`: shows and changes the state of a task.

use std::io::Write;

use clap::Args;
use cronhold_api::TaskStateBody;

use super::named_value;
use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// Show the state of a task, or set and remove fields of it
#[derive(Debug, Args)]
#[command(after_help = "\
Changes take effect together. They request no step. A step that is running replaces the fields that
it sets.

Examples:
  cronhold task state 12
  cronhold task state 12 'limit=5' 'names=[\"a\", \"b\"]' --unset last")]
pub(crate) struct TaskStateArgs {
    /// Task: its id or an alias
    #[arg(value_name = "TASK")]
    task: String,
    /// Fields that are set
    #[arg(value_name = "FIELD=JSON")]
    set: Vec<String>,
    /// Field that is removed; repeatable
    #[arg(long, value_name = "FIELD")]
    unset: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskStateArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let set = self.set.iter().map(|text| named_value("FIELD=JSON", text)).collect::<Result<_, _>>()?;
        let body = TaskStateBody { set, unset: self.unset.clone() };
        let detail = match body == TaskStateBody::default() {
            true => remote.client.task(&self.task),
            false => remote.client.change_task_state(&self.task, &body),
        };
        let state = detail.map_err(|error| remote.failure(error))?.state;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&state, out)?,
            None => render::task::state(&state, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
