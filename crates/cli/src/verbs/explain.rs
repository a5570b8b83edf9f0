//! `cronhold explain`: describes a schedule in words, with its policy for clock changes.

use std::io::Write;

use clap::Args;

use crate::input::ScheduleFlags;
use crate::render::{self, OutputFormat};
use crate::{CliError, CliSession, ExitStatus};

/// Describe a schedule in words
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold explain '0 18 * * Mon-Fri'
  cronhold explain '{daily: \"18:00\", calendar: Mon-Fri, timezone: America/New_York}'")]
pub(crate) struct ExplainArgs {
    /// Cron expression, phrase, YAML map, or path of a job file
    #[arg(value_name = "SCHEDULE|JOBFILE", allow_hyphen_values = true)]
    given: String,
    /// Time around which occurrences are shown [default: now]
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
    #[command(flatten)]
    reading: ScheduleFlags,
}

impl ExplainArgs {
    pub(crate) fn run(&self, session: &CliSession<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        self.reading.zone(session)?;
        let now = self.reading.instant_or_now("--after", self.after.as_deref(), session)?;
        let asked = self.reading.schedules(&self.given, session)?;
        match self.output.encoding() {
            None => render::explain::text(&asked, now, out)?,
            Some(encoding) => encoding.write(&render::explain::value(&asked, now), out)?,
        }
        Ok(ExitStatus::Done)
    }
}
