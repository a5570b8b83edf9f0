//! `cronhold signal`: sends a signal to a run's program.

use std::io::Write;

use clap::Args;
use cronhold_core::signal::Signal;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus, follow};

/// Send a signal to the program of a run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold signal backup#42 HUP
  cronhold signal backup SIGUSR1")]
pub(crate) struct SignalArgs {
    /// Run: its id, JOB#NUMBER, or a job for its running run
    #[arg(value_name = "RUN")]
    run: String,
    /// Signal, such as HUP, SIGUSR1 or 12
    #[arg(value_name = "SIGNAL")]
    signal: String,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl SignalArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let signal = Signal::parse(&self.signal).map_err(|error| CliError::flag("SIGNAL", error))?.to_string();
        let run =
            remote.client.signal(&self.run, &signal).map_err(|error| follow::refused(remote, &self.run, error))?;
        render::run::answer(&run, &self.shown, &clock, remote.session.colours, out)?;
        Ok(ExitStatus::Done)
    }
}
