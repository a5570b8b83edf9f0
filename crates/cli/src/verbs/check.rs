//! `cronhold check`: reports all errors in a directory of job files, without a daemon.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use cronhold_jobfile::directory;
use cronhold_schedule::Zone;

use crate::render::{self, OutputFormat};
use crate::{CliError, CliSession, ExitStatus};

/// Check a directory of job files and report all errors
#[derive(Debug, Args)]
#[command(after_help = "\
Exits with 1 if there is an error.

Example:
  cronhold check jobs/")]
pub(crate) struct CheckArgs {
    /// Directory of job files
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
}

impl CheckArgs {
    pub(crate) fn run(&self, session: &CliSession<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        let shown = self.dir.display();
        if !self.dir.is_dir() {
            return Err(match self.dir.exists() {
                true => CliError::refused(format!("{shown} is not a directory"), "pass the directory that contains it"),
                false => CliError::refused(format!("there is no directory {shown}"), "check the spelling"),
            });
        }
        let zone = Zone::utc();
        let options = directory::Options { zones: session.zones, zone: &zone, now: session.now };
        let directory = directory::load(&self.dir, &options);
        match self.output.encoding() {
            None => render::check::text(&directory, &self.dir, session.colours, out)?,
            Some(encoding) => encoding.write(&render::check::value(&directory.report), out)?,
        }
        Ok(if directory.report.mistakes.is_empty() { ExitStatus::Done } else { ExitStatus::Refused })
    }
}
