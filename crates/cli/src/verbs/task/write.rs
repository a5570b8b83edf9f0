//! `cronhold task write`: writes values to a port.

use std::io::Write;

use clap::Args;
use cronhold_api::PortChangeBody;

use super::{direction, json_value};
use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat, counted};
use crate::{CliError, ExitStatus};

/// Write values to a port of a task
#[derive(Debug, Args)]
#[command(after_help = "\
A value in an in port requests a step of the task, and a value in an out port one of its parent. All
values are written together or not at all.

Examples:
  cronhold task write 12 in 5
  cronhold task write 12 in '{\"id\": 7}' '\"text\"' null
  cronhold task write load-eu result 3 --out
  cronhold task write 12 in 5 --key payment-4711")]
pub(crate) struct TaskWriteArgs {
    /// Task: its id or an alias
    #[arg(value_name = "TASK")]
    task: String,
    /// In port
    #[arg(value_name = "PORT")]
    port: String,
    /// Values
    #[arg(value_name = "JSON", required = true, allow_negative_numbers = true)]
    values: Vec<String>,
    /// Write to the out port with this name
    #[arg(long)]
    out: bool,
    /// Request no step
    #[arg(long)]
    quiet: bool,
    /// Key of the request: within 24 hours, the same key writes to the port only once
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskWriteArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let list = self.values.iter().map(|value| json_value("JSON", value)).collect::<Result<Vec<_>, _>>()?;
        let body = PortChangeBody { list, notify: !self.quiet, ..PortChangeBody::default() };
        let (direction, key) = (direction(self.out), self.key.as_deref());
        let port = remote.client.change_port(&self.task, direction, &self.port, &body, key);
        let port = port.map_err(|error| remote.failure(error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&port, out)?,
            None => {
                let size = counted(usize::try_from(port.size).unwrap_or(usize::MAX), "value");
                render::line(&format!("{}port `{}` has {size}", direction, self.port), out)?;
            }
        }
        Ok(ExitStatus::Done)
    }
}
