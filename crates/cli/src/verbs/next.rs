//! `cronhold next`: the next occurrences of a schedule, a job file, or a stored job.

use std::io::Write;

use clap::Args;
use cronhold_api::ProblemCode;
use cronhold_core::JobId;
use cronhold_schedule::Instant;

use crate::input::ScheduleFlags;
use crate::remote::RemoteDaemon;
use crate::render::{self, OutputFormat, next::ComingOccurrence};
use crate::resolved_schedule::ResolvedSchedule;
use crate::{CliError, CliSession, ExitStatus};

/// Show the next times of a schedule, a job file or a job
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cronhold next '30 2 * * *' --timezone Europe/Berlin
  cronhold next '{hour: 14, day: last}' --after 2026-01-31T14:00:00Z -n 3 -o json
  cronhold next 'with 10m interval'
  cronhold next jobs/backup.yaml
  cronhold next backup")]
pub(crate) struct NextArgs {
    /// Cron expression, phrase such as 'with 10m interval', YAML map such as '{hour: 14}', path of a job file, or, if it
    /// is none of these, job id
    #[arg(value_name = "SCHEDULE|JOBFILE|JOB", allow_hyphen_values = true)]
    given: String,
    /// Time after which occurrences are shown [default: now]
    #[arg(long, value_name = "TIME")]
    after: Option<String>,
    /// Number of occurrences
    #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    count: u16,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
    #[command(flatten)]
    reading: ScheduleFlags,
}

impl NextArgs {
    pub(crate) fn run(&self, session: &CliSession<'_>, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        self.reading.zone(session)?;
        let after = self.reading.instant_or_now("--after", self.after.as_deref(), session)?;
        let asked = match self.reading.schedules(&self.given, session) {
            Ok(asked) => asked,
            Err(failure) => return self.of_stored_job(failure, after, session, out),
        };
        let coming = self.coming(&asked, after);
        match self.output.encoding() {
            None => render::next::table(&asked, &coming, after, out)?,
            Some(encoding) => encoding.write(&render::next::value(&coming), out)?,
        }
        Ok(ExitStatus::Done)
    }

    /// Asks the daemon, if the argument is not a schedule but may be a job id. Otherwise returns `failure`.
    fn of_stored_job(
        &self,
        failure: CliError,
        after: Instant,
        session: &CliSession<'_>,
        out: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let given = &self.given;
        if !matches!(failure, CliError::Mistakes { typed: true, .. }) || JobId::parse(given).is_err() {
            return Err(failure);
        }
        // `0 25 * * *` is a valid job id, but almost certainly an invalid schedule: report that error.
        let is_name = is_name(given);
        let remote = match RemoteDaemon::find(session) {
            Ok(remote) => remote,
            Err(CliError::Unreachable { message, hint }) if is_name => {
                let message = format!(
                    "`{given}` is not a schedule, and the daemon cannot be asked for a job with this name: {message}"
                );
                return Err(CliError::Unreachable { message, hint });
            }
            Err(other) => return Err(if is_name { other } else { failure }),
        };
        let coming = match remote.client.next(given, Some(after), self.count) {
            Ok(coming) => coming,
            Err(_) if !is_name => return Err(failure),
            Err(error) => {
                let is_unknown = error.problem().is_some_and(|problem| problem.code == ProblemCode::NotFound);
                return Err(match remote.failure_about(given, error) {
                    CliError::Refused { hint, .. } if is_unknown => {
                        CliError::Refused { message: format!("`{given}` is neither a schedule nor a job"), hint }
                    }
                    other => other,
                });
            }
        };
        match self.output.encoding() {
            None => render::next::stored(given, &coming, after, out)?,
            Some(encoding) => encoding.write(&render::next::stored_value(&coming), out)?,
        }
        Ok(ExitStatus::Done)
    }

    /// The first occurrences of all enabled schedules, in order.
    fn coming<'a>(&self, asked: &'a [ResolvedSchedule], after: Instant) -> Vec<ComingOccurrence<'a>> {
        let count = usize::from(self.count);
        let enabled = asked.iter().filter(|asked| asked.written.enabled);
        let mut coming: Vec<ComingOccurrence<'_>> = enabled
            .flat_map(|asked| asked.schedule.coming(after).take(count).map(move |at| ComingOccurrence { at, asked }))
            .collect();
        coming.sort_by_key(|coming| coming.at);
        coming.truncate(count);
        coming
    }
}

/// Whether a text looks like a job id and cannot be a schedule.
fn is_name(text: &str) -> bool {
    let signs = |sign: char| sign.is_alphanumeric() || "-_./".contains(sign);
    text.starts_with(char::is_alphabetic) && text.chars().all(signs)
}
