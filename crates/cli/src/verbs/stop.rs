//! `cronhold stop`: sends the programs of one or of many runs their stop signal, and SIGKILL after the grace period.

use std::io::Write;

use clap::Args;
use cronhold_api::RunSummary;
use cronhold_api::client::{CallError, DaemonClient};

use crate::bulk::{BulkFlags, BulkOperation};
use crate::follow::RUNNING;
use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Stop a run, or all runs of jobs: send the stop signal, then SIGKILL after the grace period
#[derive(Debug, Args)]
#[command(after_help = "\
The job sets signal and grace period (`stop: {signal: SIGTERM, grace: 30s}`).

With --job, the command lists the running runs and asks before it begins; without a terminal it needs
--yes. It exits with 1 if a run is refused.

Examples:
  cronhold stop backup
  cronhold stop backup#42 --wait
  cronhold stop --job 'etl/*' --yes")]
pub(crate) struct StopArgs {
    #[command(flatten)]
    target: StopTarget,
}

/// Arguments of `stop` and `kill`.
#[derive(Debug, Args)]
pub(crate) struct StopTarget {
    /// Run: its id, JOB#NUMBER, or a job for its running run
    #[arg(value_name = "RUN", required_unless_present = "pattern", conflicts_with_all = ["pattern", "since", "yes", "dry_run"])]
    run: Option<String>,
    /// Wait until the run has ended
    #[arg(long, conflicts_with = "pattern")]
    wait: bool,
    #[command(flatten)]
    bulk: BulkFlags,
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
        self.target.end(("stop", "stopped"), DaemonClient::stop, remote, out, err)
    }
}

impl StopTarget {
    /// Sends the request, waits for the end of the run if `--wait` is set, and prints the run.
    pub(super) fn end(
        &self,
        (verb, done): (&str, &str),
        ask: impl Fn(&DaemonClient, &str) -> Result<RunSummary, CallError>,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let Some(name) = &self.run else {
            let (flags, shown) = (&self.bulk, &self.shown);
            let operation = BulkOperation { verb, done, states: RUNNING, skips_repeated: false, flags, shown };
            return operation.run_each(ask, remote, out, err);
        };
        let clock = self.shown.clock(remote.session)?;
        let asked = ask(&remote.client, name);
        let mut run = asked.map_err(|error| follow::refused(remote, name, error))?;
        if self.wait {
            run = follow::finished(remote, &run.id, err)?;
        }
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        Ok(ExitStatus::Done)
    }
}
