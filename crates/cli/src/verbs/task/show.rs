//! `cronhold task show`: one task in detail.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus};

/// Show a task with its ports, state and children
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold task show 12
  cronhold task show load-eu -o json")]
pub(crate) struct TaskShowArgs {
    /// Task: its id or an alias
    #[arg(value_name = "TASK")]
    task: String,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl TaskShowArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let detail = remote.client.task(&self.task).map_err(|error| remote.failure(error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&detail, out)?,
            None => render::task::detail(&detail, &clock, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
