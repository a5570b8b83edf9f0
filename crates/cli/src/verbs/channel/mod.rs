//! `cronhold channel`: one file per operation on channels.

mod list;
mod publish;
mod tail;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::remote::RemoteDaemon;
use crate::{CliError, ExitStatus};

/// Publish messages on channels, and show them
#[derive(Debug, Args)]
#[command(after_help = super::SIDEJOB_HELP)]
pub(crate) struct ChannelCommand {
    /// Operation
    #[command(subcommand)]
    verb: ChannelVerb,
}

/// Operations on channels.
#[derive(Debug, Subcommand)]
enum ChannelVerb {
    Publish(publish::ChannelPublishArgs),
    Tail(tail::ChannelTailArgs),
    List(list::ChannelListArgs),
}

impl ChannelCommand {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        match &self.verb {
            ChannelVerb::Publish(publish) => publish.run(remote, out),
            ChannelVerb::Tail(tail) => tail.run(remote, out, err),
            ChannelVerb::List(list) => list.run(remote, out),
        }
    }
}
