//! `cronhold list`: jobs with their next and last runs.

use std::io::Write;

use clap::Args;
use cronhold_api::client::JobFilter;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags};
use crate::{CliError, ExitStatus};

/// List jobs with their next and last runs
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold list
  cronhold list 'reports/*' --label nightly
  cronhold list -o json")]
pub(crate) struct ListArgs {
    /// Pattern for job ids; `*` matches anything, `?` one character [default: all jobs]
    #[arg(value_name = "PATTERN")]
    pattern: Option<String>,
    /// Label that the jobs must have
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl ListArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let filter = JobFilter { pattern: self.pattern.clone(), label: self.label.clone() };
        let list = remote.client.jobs(&filter).map_err(|error| remote.failure(error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&list.jobs, out)?,
            None => render::jobs::table(&list, self.is_filtered(), &clock, remote.session.colours, out, err)?,
        }
        render::jobs::unreadable(&list.unreadable, err)?;
        Ok(ExitStatus::Done)
    }

    fn is_filtered(&self) -> bool {
        self.pattern.is_some() || self.label.is_some()
    }
}
