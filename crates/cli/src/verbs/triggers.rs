//! `cronhold triggers`: the pending triggers of a job, the decisions about them, and their removal.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, TimeDisplayFlags, counted};
use crate::{CliError, ExitStatus};

/// Show or remove the pending triggers of a job
#[derive(Debug, Args)]
#[command(after_help = "\
Below the pending triggers, the latest decisions say why runs were created or why triggers wait.

The ids of removed triggers stay known for 24 hours: a trigger that is sent again has no effect.

Examples:
  cronhold triggers build
  cronhold triggers build --remove 'repo@4711'
  cronhold triggers build --clear")]
pub(crate) struct TriggersArgs {
    /// Job id
    #[arg(value_name = "JOB")]
    job: String,
    /// Remove the pending trigger with this id
    #[arg(long, value_name = "ID", conflicts_with = "clear")]
    remove: Option<String>,
    /// Remove all pending triggers
    #[arg(long)]
    clear: bool,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl TriggersArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        if self.clear || self.remove.is_some() {
            return self.remove(remote, out);
        }
        let clock = self.shown.clock(remote.session)?;
        let list = remote.client.triggers(&self.job).map_err(|error| remote.failure_about(&self.job, error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&list, out)?,
            None => render::triggers::list(&list, &clock, remote.session.colours, out)?,
        }
        Ok(ExitStatus::Done)
    }

    fn remove(&self, remote: &RemoteDaemon<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let removed = remote.client.remove_triggers(&self.job, self.remove.as_deref());
        let removed = removed.map_err(|error| remote.failure_about(&self.job, error))?;
        match self.shown.encoding() {
            Some(encoding) => encoding.write(&removed, out)?,
            None => {
                let count = counted(usize::try_from(removed.removed).unwrap_or(usize::MAX), "pending trigger");
                render::line(&format!("removed {count} of `{}`", self.job), out)?;
            }
        }
        Ok(ExitStatus::Done)
    }
}
