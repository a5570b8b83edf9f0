//! `cronhold queues`: the queues of tasks, with their classes.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus};

/// List the queues of tasks, with their registered classes
#[derive(Debug, Args)]
#[command(after_help = super::SIDEJOB_HELP)]
pub(crate) struct QueuesArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl QueuesArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let queues = remote.client.queues().map_err(|error| remote.failure(error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&queues, out)?,
            None => render::queues::queues(&queues, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
