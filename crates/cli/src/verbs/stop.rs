//! `cronhold stop`: sends a run's program its stop signal, and SIGKILL after the grace period.

use std::io::Write;

use clap::Args;
use cronhold_api::RunSummary;
use cronhold_api::client::{CallError, DaemonClient};

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Stop a run: send its stop signal, then SIGKILL after the grace period
#[derive(Debug, Args)]
#[command(after_help = "\
The job sets signal and grace period (`stop: {signal: SIGTERM, grace: 30s}`).

Examples:
  cronhold stop backup
  cronhold stop backup#42 --wait")]
pub(crate) struct StopArgs {
    #[command(flatten)]
    target: StopTarget,
}

/// Arguments of `stop` and `kill`.
#[derive(Debug, Args)]
pub(crate) struct StopTarget {
    /// Run: its id, JOB#NUMBER, or a job for its running run
    #[arg(value_name = "RUN")]
    run: String,
    /// Wait until the run has ended
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl StopArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        self.target.end(DaemonClient::stop, remote, out, err)
    }
}

impl StopTarget {
    /// Sends the request, waits for the end of the run if `--wait` is set, and prints the run.
    pub(super) fn end(
        &self,
        ask: impl FnOnce(&DaemonClient, &str) -> Result<RunSummary, CallError>,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let asked = ask(&remote.client, &self.run);
        let mut run = asked.map_err(|error| follow::refused(remote, &self.run, error))?;
        if self.wait {
            run = follow::finished(remote, &run.id, err)?;
        }
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        Ok(ExitStatus::Done)
    }
}
