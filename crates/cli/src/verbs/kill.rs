//! `cronhold kill`: sends SIGKILL to the programs of one or of many runs.

use std::io::Write;

use clap::Args;
use cronhold_api::client::DaemonClient;

use super::stop::StopTarget;
use crate::remote::RemoteDaemon;
use crate::{CliError, ExitStatus};

/// Kill a run, or all runs of jobs: send SIGKILL immediately to the program and all descendants
#[derive(Debug, Args)]
#[command(after_help = "\
`cronhold stop` gives the program time to clean up.

Examples:
  cronhold kill backup#42 --wait
  cronhold kill --job 'etl/*'")]
pub(crate) struct KillArgs {
    #[command(flatten)]
    target: StopTarget,
}

impl KillArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        self.target.end(("kill", "killed"), DaemonClient::kill, remote, out, err)
    }
}
