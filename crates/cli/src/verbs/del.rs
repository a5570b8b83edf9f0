//! `cronhold del`: removes jobs.

use std::io::Write;

use clap::Args;
use serde_json::json;

use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat};
use crate::{CliError, ExitStatus, complain};

/// Remove jobs
#[derive(Debug, Args)]
#[command(after_help = "\
A removed job starts nothing. Its runs are kept, and active ones continue; use `cronhold stop` to end
them. To remove a job that comes from a job file, delete the file.

Example:
  cronhold del hello reports/prices")]
pub(crate) struct DelArgs {
    /// Job ids
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl DelArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let encoding = self.output.encoding();
        let (mut exit, mut removed) = (ExitStatus::Done, Vec::new());
        for name in &self.names {
            match remote.client.delete_job(name) {
                Ok(()) => {
                    removed.push(name);
                    if encoding.is_none() {
                        render::line(&format!("removed `{name}`"), out)?;
                    }
                }
                // A job that cannot be removed does not prevent the removal of the others.
                Err(error) => match remote.failure_about(name, error) {
                    away @ CliError::Unreachable { .. } => return Err(away),
                    failure => {
                        // Print the removed jobs before the error.
                        out.flush()?;
                        exit = complain(&failure, remote.session.colours, err);
                    }
                },
            }
        }
        if let Some(encoding) = encoding {
            encoding.write(&json!({ "removed": removed }), out)?;
        }
        Ok(exit)
    }
}
