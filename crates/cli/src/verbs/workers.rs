//! `cronhold workers`: the worker processes of tasks, and signals to them.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags, visible};
use crate::{CliError, ExitStatus};

/// List the worker processes that make steps of tasks, or send one a signal
#[derive(Debug, Args)]
#[command(after_help = "\
A process is listed until 60 seconds after its last heartbeat. It receives a signal with its next
one.

If no option and no variable of Cronhold names a daemon or a store, $SIDEJOB_URL or else
$SIDEJOB_HOST names the Redis of the tasks.

Examples:
  cronhold workers
  cronhold workers --quiet web-1:4711:5f3a
  cronhold workers --stop web-1:4711:5f3a")]
pub(crate) struct WorkersArgs {
    /// Make a process begin no further steps
    #[arg(long, value_name = "WORKER", conflicts_with = "stop")]
    quiet: Option<String>,
    /// Make a process finish its steps and exit
    #[arg(long, value_name = "WORKER")]
    stop: Option<String>,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl WorkersArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        if let Some(worker) = &self.quiet {
            remote.client.quiet_worker(worker).map_err(|error| remote.failure(error))?;
            render::line(&format!("`{}` will begin no further steps", visible(worker)), out)?;
            return Ok(ExitStatus::Done);
        }
        if let Some(worker) = &self.stop {
            remote.client.stop_worker(worker).map_err(|error| remote.failure(error))?;
            render::line(&format!("`{}` will finish its steps and exit", visible(worker)), out)?;
            return Ok(ExitStatus::Done);
        }
        let workers = remote.client.workers().map_err(|error| remote.failure(error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&workers, out)?,
            None => render::queues::workers(&workers, &clock, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }
}
