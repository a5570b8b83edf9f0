//! `cronhold skip`: skips a run that has not started.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Skip a run that has not started
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold skip backup#42 --why 'the disk is being replaced'")]
pub(crate) struct SkipArgs {
    /// Run: its id, JOB#NUMBER, or a job for its first run that has not started
    #[arg(value_name = "RUN")]
    run: String,
    /// Reason, kept with the run
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl SkipArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let run =
            remote.client.skip(&self.run, &self.why).map_err(|error| follow::refused(remote, &self.run, error))?;
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        Ok(ExitStatus::Done)
    }
}
