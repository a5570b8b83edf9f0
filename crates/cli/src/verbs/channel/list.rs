//! `cronhold channel list`: the channels that in ports listen to.

use std::io::Write;

use clap::Args;
use cronhold_api::LIMIT_MAX;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// List the channels that in ports of tasks listen to
#[derive(Debug, Args)]
pub(crate) struct ChannelListArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl ChannelListArgs {
    pub(crate) fn run(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let (mut channels, mut after) = (Vec::new(), None);
        loop {
            let page = remote.client.channel_page(after.as_deref(), LIMIT_MAX);
            let page = page.map_err(|error| remote.failure(error))?;
            channels.extend(page.channels);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        match self.output.encoding() {
            Some(encoding) => encoding.write(&channels, out)?,
            None => render::channels::table(&channels, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
