//! `cronhold channel publish`: publishes a message.

use std::io::Write;

use clap::Args;
use cronhold_api::{PublishBody, PublishedMessage};

use super::super::task::json_value;
use crate::remote::RemoteDaemon;
use crate::render::OutputFormat;
use crate::{CliError, ExitStatus};

/// Publish a message on a channel
#[derive(Debug, Args)]
#[command(after_help = "\
In ports that listen to the channel, or to one above it, receive the message, also if no worker
runs. Without -o, the command prints nothing.

Examples:
  cronhold channel publish /shop/orders '{\"id\": 7}'
  cronhold channel publish /shop/orders '{\"id\": 7}' --key order-7")]
pub(crate) struct ChannelPublishArgs {
    /// Channel, such as /shop/orders
    #[arg(value_name = "CHANNEL")]
    channel: String,
    /// Message
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    message: String,
    /// Key of the request: within 24 hours, the same key publishes on the channel only once
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl ChannelPublishArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let body = PublishBody { message: json_value("JSON", &self.message)? };
        let published = remote.client.publish(&self.channel, &body, self.key.as_deref());
        published.map_err(|error| remote.failure(error))?;
        if let Some(encoding) = self.output.encoding() {
            encoding.write(&PublishedMessage { channel: self.channel.clone(), message: body.message }, out)?;
        }
        Ok(ExitStatus::Done)
    }
}
