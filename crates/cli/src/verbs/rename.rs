//! `cronhold rename`: gives a job another name. Its history stays with it.

use std::io::Write;

use clap::Args;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat, counted};
use crate::{CliError, ExitStatus};

/// Rename a job; its runs and their numbers stay with it
#[derive(Debug, Args)]
#[command(after_help = "\
Pauses, run numbers, waiting runs and the outcomes that conditions read are the same under the new name.
Times of schedules with `H` or jitter depend on the name, and change. Jobs that name the old job are not
changed; the command lists them. A job that comes from a job file is renamed by renaming its file, and a
job with a running program cannot be renamed.

Example:
  cronhold rename backup nightly/backup")]
pub(crate) struct RenameArgs {
    /// Job id
    #[arg(value_name = "OLD")]
    old: String,
    /// New job id
    #[arg(value_name = "NEW")]
    new: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl RenameArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let renamed = remote.client.rename_job(&self.old, &self.new);
        let renamed = renamed.map_err(|error| remote.failure_about(&self.old, error))?;
        if let Some(encoding) = self.output.encoding() {
            encoding.write(&renamed, out)?;
            return Ok(ExitStatus::Done);
        }
        let moved = counted(usize::try_from(renamed.moved).unwrap_or(usize::MAX), "record");
        render::line(&format!("renamed `{}` to `{}`, with {moved} of its history", self.old, renamed.job), out)?;
        for place in &renamed.named_by {
            render::line(&format!("`{}` still names `{}`, in `{}`", place.job, self.old, place.key), out)?;
        }
        Ok(ExitStatus::Done)
    }
}
