//! `cronhold kill`: sends SIGKILL to a run's program.

use std::io::Write;

use clap::Args;
use cronhold_api::client::Client;

use super::stop::StopTarget;
use crate::remote::Remote;
use crate::{Exit, Failure};

/// Kill a run: send SIGKILL immediately to its program and all descendants
#[derive(Debug, Args)]
#[command(after_help = "\
`cronhold stop` gives the program time to clean up.

Examples:
  cronhold kill backup#42 --wait")]
pub(crate) struct KillArgs {
    #[command(flatten)]
    target: StopTarget,
}

impl KillArgs {
    pub(crate) fn run(&self, remote: &Remote<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failure> {
        self.target.end(Client::kill, remote, out, err)
    }
}
