//! `cronhold mark`: changes the state that a finished run counts as.

use std::io::Write;

use clap::Args;
use cronhold_core::run::State;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Mark a finished run as success, failure, error or skipped
#[derive(Debug, Args)]
#[command(after_help = "\
Runs that wait for this run see the new state.
An unfinished run whose record cannot be read is ended by its id, and its program is killed.

Examples:
  cronhold mark backup#42 success --why 'restored by hand'")]
pub(crate) struct MarkArgs {
    /// Run: its id, JOB#NUMBER, or a job for its running run, else the last one that started
    #[arg(value_name = "RUN")]
    run: String,
    /// New state: success, failure, error or skipped
    #[arg(value_name = "STATE")]
    state: String,
    /// Reason, kept with the run
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl MarkArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let state = State::parse(&self.state).map_err(|error| CliError::flag("STATE", error))?;
        let run = remote.client.mark(&self.run, state, &self.why);
        let run = run.map_err(|error| follow::refused(remote, &self.run, error))?;
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        Ok(ExitStatus::Done)
    }
}
