//! `cronhold lint`: warns about valid schedules that may not mean what was intended.

use std::io::Write;
use std::path::Path;

use clap::Args;
use cronhold_jobfile::directory::{self, Directory};
use cronhold_schedule::{JobHistory, Span, lint};

use crate::input::ScheduleFlags;
use crate::render::{self, OutputFormat, lint::FoundWarning};
use crate::resolved_schedule::ResolvedSchedule;
use crate::{CliError, CliSession, ExitStatus};

/// Warn about schedules that are valid but likely to surprise you
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold lint '30 2 * * *' --timezone Europe/Berlin
  cronhold lint '*/7 * * * *' --median-run 10m
  cronhold lint jobs/ --strict")]
pub(crate) struct LintArgs {
    /// Cron expression, phrase, YAML map, path of a job file, or directory of job files
    #[arg(value_name = "SCHEDULE|FILE|DIR", allow_hyphen_values = true)]
    given: String,
    /// Time from which dates are checked [default: now]
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// Median duration of the job's runs
    #[arg(long, value_name = "SPAN")]
    median_run: Option<String>,
    /// Exit with 1 if there is a warning
    #[arg(long)]
    strict: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
    #[command(flatten)]
    reading: ScheduleFlags,
}

impl LintArgs {
    pub(crate) fn run(&self, session: &CliSession<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        self.reading.zone(session)?;
        let now = self.reading.instant_or_now("--after", self.after.as_deref(), session)?;
        let past = JobHistory { median_run: self.median_run()? };
        let directory = self.directory(session)?;
        let asked = match &directory {
            Some(directory) => self.all_in(directory, session),
            None => self.reading.schedules(&self.given, session)?,
        };
        let enabled: Vec<&ResolvedSchedule> = asked.iter().filter(|asked| asked.written.enabled).collect();
        let mut found = Vec::new();
        for asked in enabled.iter().copied() {
            let warnings = lint(&asked.written.spec, &asked.schedule, asked.owner.id(), now, past);
            found.extend(warnings.into_iter().map(|warning| FoundWarning { asked, warning }));
        }
        match self.output.encoding() {
            None => render::lint::text(&found, &enabled, session.colours, out)?,
            Some(encoding) => encoding.write(&render::lint::value(&found), out)?,
        }
        if let Some(mistakes) = directory.map(|directory| directory.report.mistakes.len()).filter(|count| *count > 0) {
            return Err(self.left_out(mistakes));
        }
        Ok(if self.strict && !found.is_empty() { ExitStatus::Refused } else { ExitStatus::Done })
    }

    fn median_run(&self) -> Result<Option<Span>, CliError> {
        let parsed = self.median_run.as_deref().map(Span::parse).transpose();
        parsed.map_err(|error| CliError::flag("--median-run", error))
    }

    /// The directory that was given, or `None` if it was a schedule or a file.
    fn directory(&self, session: &CliSession<'_>) -> Result<Option<Directory>, CliError> {
        let path = Path::new(&self.given);
        if !path.is_dir() {
            return Ok(None);
        }
        if self.reading.root.is_some() || self.reading.job.is_some() {
            let message = "--root and --job are for one schedule or job file";
            return Err(CliError::usage(message, "omit them: the directory determines the job ids"));
        }
        let zone = self.reading.zone(session)?;
        Ok(Some(directory::load(path, &self.reading.loading(&zone, session))))
    }

    fn all_in(&self, directory: &Directory, session: &CliSession<'_>) -> Vec<ResolvedSchedule> {
        let jobs = directory.jobs.iter();
        jobs.filter_map(|(id, job)| self.reading.of_job(id, job, &directory.report.calendars, session))
            .flatten()
            .collect()
    }

    /// The error after linting a directory with invalid files: the other files were checked, these were not.
    fn left_out(&self, mistakes: usize) -> CliError {
        let mistakes = render::counted(mistakes, "error");
        let message = format!("{} has {mistakes}; the affected jobs were not checked", self.given);
        CliError::refused(message, format!("`cronhold check {}` shows all errors", self.given))
    }
}
