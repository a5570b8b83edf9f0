//! `cronhold task port`: the options of a port.

use std::io::Write;

use clap::Args;
use cronhold_api::PortChangeBody;

use super::{direction, json_value};
use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// Show or change the default and the channels of a port
#[derive(Debug, Args)]
#[command(after_help = "\
An in port receives the messages of its channels; what is written to an out port is published on
its channels. --channel replaces the channels of the port.

Examples:
  cronhold task port 12 in
  cronhold task port 12 in --channel /shop/orders --channel /shop/returns
  cronhold task port 12 factor --default 1
  cronhold task port 12 factor --no-default")]
pub(crate) struct TaskPortArgs {
    /// Task: its id or an alias
    #[arg(value_name = "TASK")]
    task: String,
    /// In port
    #[arg(value_name = "PORT")]
    port: String,
    /// The out port with this name
    #[arg(long)]
    out: bool,
    /// New default, which a read returns while the port is empty
    #[arg(long, value_name = "JSON", allow_negative_numbers = true, conflicts_with = "no_default")]
    default: Option<String>,
    /// Remove the default
    #[arg(long)]
    no_default: bool,
    /// Channel of the port; repeatable
    #[arg(long = "channel", value_name = "CHANNEL", conflicts_with = "no_channels")]
    channels: Vec<String>,
    /// Remove all channels
    #[arg(long)]
    no_channels: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl TaskPortArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let direction = direction(self.out);
        let default = self.default.as_deref().map(|text| json_value("--default", text)).transpose()?;
        let changes_channels = self.no_channels || !self.channels.is_empty();
        let body = PortChangeBody {
            default,
            clear_default: self.no_default,
            channels: changes_channels.then(|| self.channels.clone()),
            ..PortChangeBody::default()
        };
        if body != PortChangeBody::default() {
            let changed = remote.client.change_port(&self.task, direction, &self.port, &body, None);
            changed.map_err(|error| remote.failure(error))?;
        }
        let port = remote.client.port_items(&self.task, direction, &self.port, None, 1);
        let port = port.map_err(|error| remote.failure(error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&render::task::port_summary(port), out)?,
            None => render::task::port(direction, &port, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
