//! `cronhold explain`: what a schedule says, in words, and how it treats clock changes.

use std::io::Write;

use clap::Args;

use crate::input::Reading;
use crate::render::{self, Format};
use crate::{Exit, Failure, Session};

/// Say in words what a schedule means
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold explain '0 18 * * Mon-Fri'
  cronhold explain '{daily: \"18:00\", calendar: Mon-Fri, timezone: America/New_York}'")]
pub(crate) struct Explain {
    /// Cron text, phrase, YAML map, or path of a job file
    #[arg(value_name = "SCHEDULE|JOBFILE", allow_hyphen_values = true)]
    given: String,
    /// Show the occurrences around this; now, if not given
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
    #[command(flatten)]
    reading: Reading,
}

impl Explain {
    pub(crate) fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Exit, Failure> {
        self.reading.zone(session)?;
        let now = self.reading.instant_or_now("--after", self.after.as_deref(), session)?;
        let asked = self.reading.schedules(&self.given, session)?;
        match self.output.encoding() {
            None => render::explain::text(&asked, now, out)?,
            Some(encoding) => encoding.write(&render::explain::value(&asked, now), out)?,
        }
        Ok(Exit::Done)
    }
}
