//! `cronhold coming`: what runs next across all jobs.

use std::io::Write;

use clap::Args;
use cronhold_api::LIMIT_MAX;
use cronhold_schedule::Span;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus};

/// Show what runs next across all jobs
#[derive(Debug, Args)]
#[command(after_help = "\
Lists occurrences of schedules, and runs that wait for a given time, by due time. Paused jobs are left
out until their pause ends, and so are schedules that wait for the end of a run.

Examples:
  cronhold coming
  cronhold coming --for 8h
  cronhold coming --for 1d -o json")]
pub(crate) struct ComingArgs {
    /// Length of the period from now on
    #[arg(long = "for", value_name = "SPAN", default_value = "1h")]
    window: String,
    /// Maximum number of runs
    #[arg(short = 'n', long = "count", value_name = "N", default_value_t = LIMIT_MAX as u16, value_parser = clap::value_parser!(u16).range(1..=LIMIT_MAX as i64))]
    count: u16,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl ComingArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let window = Span::parse(&self.window).map_err(|error| CliError::flag("--for", error))?;
        let coming = remote.client.coming(window, self.count.into()).map_err(|error| remote.failure(error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&coming.items, out)?,
            None => render::coming::table(&coming, window, &clock, remote.session.colours, out)?,
        }
        render::coming::note(&coming, err)?;
        Ok(ExitStatus::Done)
    }
}
