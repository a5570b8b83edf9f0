//! `cronhold task read`: takes values from a port, or shows them.

use std::io::Write;

use clap::Args;
use cronhold_api::{LIMIT_MAX, PortItemValue, PortReadBody};
use cronhold_core::task::PortDirection;

use super::direction;
use crate::remote::RemoteDaemon;
use crate::render::{MachineFormat, OutputFormat};
use crate::{CliError, ExitStatus};

/// Values that one request takes with `--all`.
const BATCH: u64 = 100;

/// Take a value from a port of a task, and print it as JSON
#[derive(Debug, Args)]
#[command(after_help = "\
The value is gone from the port afterwards, unless --peek is set. If the port is empty, its default
is printed; if it has no default either, the command exits with 1.

With --all, the command takes 100 values at a time. If it is interrupted, those that it has taken
and not yet printed are lost; --peek loses nothing.

Examples:
  cronhold task read 12 sum --out
  cronhold task read 12 in --peek
  cronhold task read load-eu rows --out --all | jq .id
  cronhold task read 12 sum --out -o json      with the context of the value")]
pub(crate) struct TaskReadArgs {
    /// Task: its id or an alias
    #[arg(value_name = "TASK")]
    task: String,
    /// In port
    #[arg(value_name = "PORT")]
    port: String,
    /// Read the out port with this name
    #[arg(long)]
    out: bool,
    /// All values, one on each line, without the default; exits with 0 also if there are none
    #[arg(long)]
    all: bool,
    /// Leave the values in the port
    #[arg(long)]
    peek: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskReadArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        match (self.all, self.peek) {
            (false, false) => {
                let items = self.take(1, true, remote)?;
                self.print_one(items.into_iter().next(), out)
            }
            (false, true) => {
                let port = remote.client.port_items(&self.task, self.direction(), &self.port, None, 1);
                let port = port.map_err(|error| remote.failure(error))?;
                let default = port.default.map(|data| PortItemValue { data, context: None });
                self.print_one(port.items.into_iter().next().or(default), out)
            }
            (true, false) => {
                loop {
                    let items = self.take(BATCH, false, remote)?;
                    if items.is_empty() {
                        return Ok(ExitStatus::Done);
                    }
                    // Values that are taken are printed before more are taken.
                    items.iter().try_for_each(|item| self.print(item, out))?;
                    out.flush()?;
                }
            }
            (true, true) => self.peek_all(remote, out),
        }
    }

    fn direction(&self) -> PortDirection {
        direction(self.out)
    }

    fn take(&self, count: u64, default: bool, remote: &RemoteDaemon<'_>) -> Result<Vec<PortItemValue>, CliError> {
        let body = PortReadBody { count, default };
        let taken = remote.client.read_port(&self.task, self.direction(), &self.port, &body);
        Ok(taken.map_err(|error| remote.failure(error))?.items)
    }

    fn peek_all(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let mut from = None;
        loop {
            let page = remote.client.port_items(&self.task, self.direction(), &self.port, from, LIMIT_MAX);
            let page = page.map_err(|error| remote.failure(error))?;
            page.items.iter().try_for_each(|item| self.print(item, out))?;
            from = page.next;
            if from.is_none() {
                return Ok(ExitStatus::Done);
            }
        }
    }

    fn print_one(&self, item: Option<PortItemValue>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let Some(item) = item else {
            let message = format!("{}port `{}` has neither a value nor a default", self.direction(), self.port);
            return Err(CliError::refused(message, "`cronhold task show` shows the sizes of all ports"));
        };
        self.print(&item, out)?;
        Ok(ExitStatus::Done)
    }

    /// Prints a value as one line of JSON, or with its context in the requested format.
    fn print(&self, item: &PortItemValue, out: &mut dyn Write) -> Result<(), CliError> {
        match self.output.encoding() {
            Some(encoding) => encoding.write_item(item, out)?,
            None => MachineFormat::Json.write_item(&item.data, out)?,
        }
        Ok(())
    }
}
