//! `cronhold mark`: a finished run counts as something else from now on.

use std::io::Write;

use clap::Args;
use cronhold_core::run::State;

use crate::remote::Remote;
use crate::render::{self, Shown};
use crate::{Exit, Failure};

/// Let a finished run count as success, failure, error or skipped
#[derive(Debug, Args)]
#[command(after_help = "\
What waits for the run, and what is done at such an end, sees the new state.

Examples:
  cronhold mark backup#42 success --why 'restored by hand'")]
pub(crate) struct Mark {
    /// The run: its id, job#number, or a job's name for its latest
    #[arg(value_name = "RUN")]
    run: String,
    /// As what: success, failure, error or skipped
    #[arg(value_name = "STATE")]
    state: String,
    /// Why; it is kept with the run
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
    #[command(flatten)]
    shown: Shown,
}

impl Mark {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, _: &mut dyn Write) -> Result<Exit, Failure> {
        let wall = self.shown.wall(remote.session)?;
        let state = State::parse(&self.state).map_err(|error| Failure::flag("STATE", error))?;
        let run = remote.client.mark(&self.run, state, &self.why);
        let run = run.map_err(|error| remote.failure_about(&self.run, error))?;
        render::run::answer(&run, &self.shown, &wall, remote.session.colours, out)?;
        Ok(Exit::Done)
    }
}
