//! `cronhold lint`: what may not be meant in schedules that are valid.

use std::io::Write;
use std::path::Path;

use clap::Args;
use cronhold_jobfile::directory;
use cronhold_schedule::{Past, Span, lint};

use crate::input::{Asked, Reading};
use crate::render::{self, Format, lint::Found};
use crate::{Exit, Failure, Session};

/// Warn about schedules that are valid but may not mean what their writer meant
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold lint '30 2 * * *' --timezone Europe/Berlin
  cronhold lint '*/7 * * * *' --median-run 10m
  cronhold lint jobs/ --strict")]
pub(crate) struct Lint {
    /// Cron text, phrase, YAML map, path of a job file, or directory of job files
    #[arg(value_name = "SCHEDULE|FILE|DIR", allow_hyphen_values = true)]
    given: String,
    /// Look from this time on; now, if not given
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// How long half of the job's runs take at most
    #[arg(long, value_name = "SPAN")]
    median_run: Option<String>,
    /// Exit with 1 if there is a warning
    #[arg(long)]
    strict: bool,
    /// How to show warnings
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
    #[command(flatten)]
    reading: Reading,
}

impl Lint {
    pub(crate) fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Exit, Failure> {
        self.reading.zone(session)?;
        let now = self.reading.instant_or_now("--after", self.after.as_deref(), session)?;
        let past = Past { median_run: self.median_run()? };
        let asked = self.asked(session)?;
        let mut found = Vec::new();
        for asked in asked.iter().filter(|asked| asked.enabled) {
            let warnings = lint(&asked.spec, &asked.schedule, now, past);
            found.extend(warnings.into_iter().map(|warning| Found { asked, warning }));
        }
        match self.output {
            Format::Table => render::lint::text(&found, asked.len(), session.colours, out)?,
            Format::Json => render::lint::json(&found, out)?,
        }
        Ok(if self.strict && !found.is_empty() { Exit::Refused } else { Exit::Done })
    }

    fn median_run(&self) -> Result<Option<Span>, Failure> {
        let parsed = self.median_run.as_deref().map(Span::parse).transpose();
        parsed.map_err(|error| Failure::Usage { message: format!("--median-run: {}", error.message), hint: error.hint })
    }

    fn asked(&self, session: &Session<'_>) -> Result<Vec<Asked>, Failure> {
        let path = Path::new(&self.given);
        if !path.is_dir() {
            return self.reading.schedules(&self.given, session);
        }
        let zone = self.reading.zone(session)?;
        let directory = directory::load(path, &self.reading.loading(&zone, session));
        if !directory.mistakes.is_empty() {
            let count = directory.mistakes.len();
            return Err(Failure::refused(
                format!("{} has {count} mistakes", self.given),
                format!("`cronhold check {}` shows them", self.given),
            ));
        }
        let mut asked = Vec::new();
        for (id, loaded) in &directory.jobs {
            asked.extend(self.reading.of_job(id.as_str(), &loaded.job, &directory.calendars, session)?);
        }
        Ok(asked)
    }
}
