//! `cronhold task connect`: moves the values of a port to other ports.

use std::io::Write;

use clap::Args;
use cronhold_api::{ConnectBody, TaskPortPlace, TaskReference};
use cronhold_schedule::text::shortened;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat, counted};
use crate::{CliError, ExitStatus};

/// Move all values of a port to other ports, each of which gets all of them
#[derive(Debug, Args)]
#[command(after_help = "\
A port is written as TASK:in:PORT or TASK:out:PORT. The default of the port is copied. Everything
happens in one commit.

Examples:
  cronhold task connect 12:out:sum 13:in:numbers
  cronhold task connect load-eu:out:rows 13:in:rows 14:in:rows")]
pub(crate) struct TaskConnectArgs {
    /// Port whose values are moved
    #[arg(value_name = "FROM")]
    from: String,
    /// Port that gets the values; repeatable
    #[arg(value_name = "TO", required = true)]
    to: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskConnectArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let TaskPortPlace { task, direction, port } = place("FROM", &self.from)?;
        let to = self.to.iter().map(|text| place("TO", text)).collect::<Result<_, _>>()?;
        let reply = remote.client.connect_task(&task.to_string(), &ConnectBody { direction, port, to });
        let reply = reply.map_err(|error| remote.failure(error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&reply, out)?,
            None => {
                let moved = counted(usize::try_from(reply.moved).unwrap_or(usize::MAX), "value");
                render::line(&format!("moved {moved} of {}", self.from), out)?;
            }
        }
        Ok(ExitStatus::Done)
    }
}

/// Parses `TASK:in:PORT`. An alias may contain colons.
fn place(what: &str, text: &str) -> Result<TaskPortPlace, CliError> {
    let mut parts = text.rsplitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(port), Some(direction @ ("in" | "out")), Some(task)) if !task.is_empty() && !port.is_empty() => {
            let task = TaskReference::Text(task.to_owned());
            Ok(TaskPortPlace { task, direction: direction.to_owned(), port: port.to_owned() })
        }
        _ => {
            let message = format!("{what}: `{}` is not a port of a task", shortened(text));
            Err(CliError::usage(message, "write TASK:in:PORT or TASK:out:PORT, such as 12:out:sum"))
        }
    }
}
