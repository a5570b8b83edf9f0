//! `cronhold start`: starts one or many scheduled or waiting runs now.

use std::io::Write;

use clap::Args;
use cronhold_api::client::DaemonClient;

use crate::bulk::{BulkFlags, BulkOperation};
use crate::follow::WAITING;
use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Start a scheduled or waiting run now, or all of them of jobs
#[derive(Debug, Args)]
#[command(after_help = "\
With --job, the command lists the runs and asks before it begins; without a terminal it needs --yes.

A run that waits for its time continues with its conditions; a run that waits for its conditions
starts.

Examples:
  cronhold start backup#42
  cronhold start reports/prices --wait
  cronhold start --job 'etl/*'")]
pub(crate) struct StartArgs {
    /// Run: its id, JOB#NUMBER, or a job for its first run that has not started
    #[arg(value_name = "RUN", required_unless_present = "pattern", conflicts_with_all = ["pattern", "since", "yes", "dry_run"])]
    run: Option<String>,
    /// Wait for the run and its retries and print their output; exit with 0 only if the last one succeeds
    #[arg(long, conflicts_with = "pattern")]
    wait: bool,
    #[command(flatten)]
    bulk: BulkFlags,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl StartArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let Some(name) = &self.run else {
            let (flags, shown) = (&self.bulk, &self.shown);
            let (verb, done) = ("start", "started");
            let operation = BulkOperation { verb, done, states: WAITING, skips_repeated: false, flags, shown };
            return operation.run_each(DaemonClient::start, remote, out, err);
        };
        let clock = self.shown.clock(remote.session)?;
        let run = remote.client.start(name).map_err(|error| follow::refused(remote, name, error))?;
        if self.wait {
            return follow::to_end(remote, &run, &self.shown, out, err);
        }
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        Ok(ExitStatus::Done)
    }
}
