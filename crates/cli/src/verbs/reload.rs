//! `cronhold reload`: rereads the job files and reports the result. The daemon also does so when a file changes.

use std::io::Write;

use clap::Args;
use cronhold_api::client::JobFilter;

use crate::remote::RemoteDaemon;
use crate::render::OutputFormat;
use crate::{CliError, ExitStatus, render};

/// Reread the job files and report the result
#[derive(Debug, Args)]
#[command(after_help = "\
The daemon notices changed files by itself; use this command in scripts, or if you do not want to wait.
It exits with 1 if a file is invalid.")]
pub(crate) struct ReloadArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl ReloadArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let reloaded = remote.client.reload().map_err(|error| remote.failure(error))?;
        match self.output.encoding() {
            Some(encoding) => encoding.write(&reloaded, out)?,
            None => render::line(&reloaded.summary, out)?,
        }
        if reloaded.mistakes > 0 {
            out.flush()?;
            let list = remote.client.jobs(&JobFilter::default()).map_err(|error| remote.failure(error))?;
            render::jobs::mistakes(&list, err)?;
        }
        Ok(if reloaded.mistakes == 0 { ExitStatus::Done } else { ExitStatus::Refused })
    }
}
