//! `cronhold pause`: schedules start nothing until `cronhold resume`, or until a time.

use std::io::Write;

use clap::Args;
use cronhold_api::client::{CallError, JobFilter};
use cronhold_api::{PauseBody, PauseChange};
use cronhold_schedule::{Instant, Span};

use crate::remote::RemoteDaemon;
use crate::render::{self, LocalTimeFormat, TimeDisplayFlags};
use crate::time_input::{self, Direction};
use crate::{CliError, ExitStatus, counted};

/// Argument that means all jobs.
pub(crate) const ALL: &str = "all";

/// Pause a job, the jobs of a pattern, or all jobs
#[derive(Debug, Args)]
#[command(after_help = "\
While a job is paused, its schedules start nothing. Active runs continue, and `cronhold run` still
works. When the pause ends, the job's `catch_up` decides about missed occurrences.

With --for or --until, the pause ends by itself. For a job that is paused already, they change when the
pause ends, and without them it lasts until it is resumed.

Examples:
  cronhold pause backup --why 'the disk is full'
  cronhold pause 'etl/*' --for 2h
  cronhold pause all --until 14:00 --why maintenance")]
pub(crate) struct PauseArgs {
    /// Job id, pattern such as 'etl/*', or `all`
    #[arg(value_name = "JOB|PATTERN|all")]
    job: String,
    /// Length of the pause, such as 2h [default: until it is resumed]
    #[arg(long = "for", value_name = "SPAN", conflicts_with = "until")]
    lasts: Option<String>,
    /// End of the pause, such as 14:00 or 2026-11-16T14:00:00Z [default: until it is resumed]
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Reason, shown by `cronhold why` and `cronhold list`
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    why: String,
    #[command(flatten)]
    shown: TimeDisplayFlags,
}

impl PauseArgs {
    pub(crate) fn run(
        &self,
        remote: &RemoteDaemon<'_>,
        out: &mut dyn Write,
        _: &mut dyn Write,
    ) -> Result<ExitStatus, CliError> {
        let clock = self.shown.clock(remote.session)?;
        let until = self.until(&clock)?;
        let body = PauseBody { why: self.why.clone(), until };
        if is_pattern(&self.job) {
            let jobs = matching(&self.job, remote)?;
            let (mut changed, mut changes) = (0, Vec::new());
            for job in &jobs {
                let paused = remote.client.pause(Some(job), &body);
                changed += usize::from(paused.map_err(|error| remote.failure_about(job, error))?);
                if self.shown.encoding().is_some() {
                    changes.push(state(Some(job), remote).map_err(|error| remote.failure(error))?);
                }
            }
            match self.shown.encoding() {
                Some(encoding) => encoding.write(&changes, out)?,
                None => render::line(&pattern_words("paused", changed, &jobs, until, &clock), out)?,
            }
            return Ok(ExitStatus::Done);
        }
        let paused = remote.client.pause(one(&self.job), &body);
        let is_new = paused.map_err(|error| remote.failure_about(&self.job, error))?;
        let end = |job: &str| match until {
            Some(until) => format!(" until {}", clock.both(until)),
            None => format!("; `cronhold resume {job}` ends it"),
        };
        let text = match (self.shown.encoding(), one(&self.job)) {
            (Some(encoding), job) => {
                encoding.write(&state(job, remote).map_err(|error| remote.failure(error))?, out)?;
                return Ok(ExitStatus::Done);
            }
            (None, Some(job)) if !is_new => format!("`{job}` is already paused; nothing to do"),
            (None, None) if !is_new => "everything is already paused; nothing to do".to_owned(),
            (None, Some(job)) => format!("paused `{job}`{}", end(job)),
            (None, None) => format!("paused everything{}", end(ALL)),
        };
        render::line(&text, out)?;
        Ok(ExitStatus::Done)
    }

    /// When the pause ends by itself.
    fn until(&self, clock: &LocalTimeFormat) -> Result<Option<Instant>, CliError> {
        if let Some(text) = &self.lasts {
            let span = Span::parse(text).map_err(|error| CliError::flag("--for", error))?;
            if span.is_zero() {
                return Err(CliError::usage("--for: a pause cannot have no length", "give a span such as 2h"));
            }
            return Ok(Some(clock.now.plus(span)));
        }
        let until = self.until.as_deref().map(|text| time_input::read(text, Direction::Ahead, clock)).transpose();
        let until = until.map_err(|error| CliError::flag("--until", error))?;
        match until {
            Some(until) if until <= clock.now => {
                let message = format!("--until: {} has passed", clock.both(until));
                Err(CliError::usage(message, "give a time in the future, or use --for with a span such as 2h"))
            }
            until => Ok(until),
        }
    }
}

/// Whether the argument is a pattern of job ids.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// The ids of the jobs that match a pattern; at least one. Jobs of which only an invalid file is known are left out.
pub(crate) fn matching(pattern: &str, remote: &RemoteDaemon<'_>) -> Result<Vec<String>, CliError> {
    let filter = JobFilter { pattern: Some(pattern.to_owned()), label: None };
    let list = remote.client.jobs(&filter).map_err(|error| remote.failure(error))?;
    let jobs: Vec<String> = list.jobs.into_iter().filter(|job| !job.source.is_empty()).map(|job| job.id).collect();
    match jobs.is_empty() {
        true => Err(CliError::refused(format!("no job matches `{pattern}`"), "`cronhold list` shows the jobs")),
        false => Ok(jobs),
    }
}

/// What was done to the jobs of a pattern.
fn pattern_words(
    done: &str,
    changed: usize,
    jobs: &[String],
    until: Option<Instant>,
    clock: &LocalTimeFormat,
) -> String {
    let until = until.map(|until| format!(" until {}", clock.both(until))).unwrap_or_default();
    let rest = match jobs.len() - changed {
        0 => String::new(),
        rest => format!("; nothing to do for {}", counted(rest, "other job")),
    };
    format!("{done} {}{until}{rest}", counted(changed, "job"))
}

/// The current pause of a job, or of everything, in the form that the event feed uses.
pub(crate) fn state(job: Option<&str>, remote: &RemoteDaemon<'_>) -> Result<PauseChange, CallError> {
    let pause = match job {
        Some(job) => remote.client.job(job)?.0.job.pause,
        None => remote.client.job_page(&JobFilter::default(), None, 1)?.pause,
    };
    Ok(PauseChange { job: job.map(str::to_owned), pause })
}

/// The job id, or `None` for `all`.
pub(crate) fn one(given: &str) -> Option<&str> {
    Some(given).filter(|given| *given != ALL)
}
