//! `cronhold channel tail`: prints messages as they are published.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus, follow};

/// Show the messages of channels as they are published, until Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = "\
A message on a channel below a named one is shown too, once for each named channel that it reaches.
If the connection to the daemon is lost, the command reconnects; it misses what is published
meanwhile. An in port misses nothing.

Examples:
  cronhold channel tail /
  cronhold channel tail /shop/orders /shop/returns
  cronhold channel tail /sidejob/log -o json | jq .message")]
pub(crate) struct ChannelTailArgs {
    /// Channels, such as /shop/orders
    #[arg(value_name = "CHANNEL", required = true)]
    channels: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl ChannelTailArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        // The daemon must be there at the beginning: reconnecting is for a daemon that was there.
        remote.client.nodes().map_err(|error| remote.failure(error))?;
        (remote.session.end_with_reader)();
        follow::ignore_broken_pipe(follow::with_reconnect(remote, err, |remote| self.listen(remote, out)))
    }

    fn listen(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let failed = |error| remote.failure(error);
        let mut messages = remote.client.channel_messages(&self.channels).map_err(failed)?;
        while let Some(event) = messages.next_message().map_err(failed)? {
            match self.output.encoding() {
                Some(encoding) => encoding.write_item(&event, out)?,
                None => render::channels::message(&event, remote.session.colours, out)?,
            }
            out.flush()?;
        }
        Err(CliError::Unreachable { message: "the daemon closed the connection".to_owned(), hint: None })
    }
}
