//! `cronhold next`: the coming occurrences of a schedule or of a job file.

use std::io::Write;

use clap::Args;
use cronhold_schedule::Instant;

use crate::asked::Asked;
use crate::input::Reading;
use crate::render::{self, Format, next::Coming};
use crate::{Exit, Failure, Session};

/// Show when a schedule or a job file is due next
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold next '30 2 * * *' --timezone Europe/Berlin
  cronhold next '{hour: 14, day: last}' --after 2026-01-31T14:00:00Z -n 3 -o json
  cronhold next 'with 10m interval'
  cronhold next jobs/backup.yaml")]
pub(crate) struct Next {
    /// Cron text, phrase such as 'with 10m interval', YAML map such as '{hour: 14}', or path of a job file
    #[arg(value_name = "SCHEDULE|JOBFILE", allow_hyphen_values = true)]
    given: String,
    /// Show what comes strictly after this; now, if not given
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// How many occurrences
    #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    count: u16,
    /// How to show them
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
    #[command(flatten)]
    reading: Reading,
}

impl Next {
    pub(crate) fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Exit, Failure> {
        self.reading.zone(session)?;
        let after = self.reading.instant_or_now("--after", self.after.as_deref(), session)?;
        let asked = self.reading.schedules(&self.given, session)?;
        let coming = self.coming(&asked, after);
        match self.output {
            Format::Table => render::next::table(&asked, &coming, after, out)?,
            Format::Json => render::next::json(&coming, out)?,
        }
        Ok(Exit::Done)
    }

    /// The first occurrences of all enabled schedules together, in order.
    fn coming<'a>(&self, asked: &'a [Asked], after: Instant) -> Vec<Coming<'a>> {
        let count = usize::from(self.count);
        let enabled = asked.iter().filter(|asked| asked.written.enabled);
        let mut coming: Vec<Coming<'_>> = enabled
            .flat_map(|asked| asked.schedule.coming(after).take(count).map(move |at| Coming { at, asked }))
            .collect();
        coming.sort_by_key(|coming| coming.at);
        coming.truncate(count);
        coming
    }
}
