//! `cronhold skip`: skips one or many runs that have not started.

use std::io::Write;

use clap::Args;

use crate::bulk::{BulkFlags, BulkOperation};
use crate::follow::WAITING;
use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Skip a run that has not started, or all of them of jobs
#[derive(Debug, Args)]
#[command(after_help = "\
With --job, the command lists the runs and asks before it begins; without a terminal it needs --yes.

Examples:
  cronhold skip backup#42 --why 'the disk is being replaced'
  cronhold skip --job 'etl/*' --dry-run")]
pub(crate) struct SkipArgs {
    /// Run: its id, JOB#NUMBER, or a job for its first run that has not started
    #[arg(value_name = "RUN", required_unless_present = "pattern", conflicts_with_all = ["pattern", "since", "yes", "dry_run"])]
    run: Option<String>,
    /// Reason, kept with the run
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
    #[command(flatten)]
    bulk: BulkFlags,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl SkipArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let Some(name) = &self.run else {
            let (flags, shown) = (&self.bulk, &self.shown);
            let (verb, done) = ("skip", "skipped");
            let operation = BulkOperation { verb, done, states: WAITING, skips_repeated: false, flags, shown };
            return operation.run_each(|client, run| client.skip(run, &self.why), remote, out, err);
        };
        let clock = self.shown.clock(remote.session)?;
        let run = remote.client.skip(name, &self.why).map_err(|error| follow::refused(remote, name, error))?;
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        Ok(ExitStatus::Done)
    }
}
