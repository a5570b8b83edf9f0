//! Reads the arguments SCHEDULE, JOBFILE and DIR into compiled schedules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use cronhold_core::JobId;
use cronhold_core::job::{Job, JobSchedule};
use cronhold_jobfile::directory::{self, DirectoryReport, UnreadableFile};
use cronhold_jobfile::{JobPlaces, Mistake, Options, read_job, read_schedule};
use cronhold_schedule::calendar::CalendarSet;
use cronhold_schedule::text::shortened;
use cronhold_schedule::{
    CompileContext, CompileError, FoldPolicy, GapPolicy, Instant, Schedule, ScheduleSpec, TimeBound, Zone,
};

use crate::job_root::{guess_root, id_below};
use crate::resolved_schedule::{ResolvedSchedule, ScheduleOwner};
use crate::{CliError, CliSession};

/// Options of all commands that take a schedule.
#[derive(Debug, Args)]
pub(crate) struct ScheduleFlags {
    /// Time zone of schedules without one
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) timezone: String,
    /// Jobs directory, from which calendars (*.cal, *.ics) and job ids follow [default for a job file: the nearest parent
    /// directory with a `calendars` folder, else the file's own directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Job id from which `H` and jitter are derived [default: the file's path below the jobs directory]
    #[arg(long, value_name = "ID")]
    pub(crate) job: Option<String>,
}

impl ScheduleFlags {
    /// The zone of schedules without one.
    pub(crate) fn zone(&self, session: &CliSession<'_>) -> Result<Zone, CliError> {
        session.zones.get(&self.timezone).map_err(|error| CliError::flag("--timezone", error))
    }

    /// Parses a time, or returns the current one if `text` is `None`. Local times are in the zone of `--timezone`.
    pub(crate) fn instant_or_now(
        &self,
        flag: &str,
        text: Option<&str>,
        session: &CliSession<'_>,
    ) -> Result<Instant, CliError> {
        let Some(text) = text else {
            return Ok(session.now);
        };
        let wrong = |error| CliError::flag(flag, error);
        let local = match TimeBound::parse(text).map_err(wrong)? {
            TimeBound::Instant(_) => return Instant::parse(text).map_err(wrong),
            TimeBound::Local(local) => local,
            TimeBound::Day(day) => day.midnight(),
        };
        let mut instants = self.zone(session)?.instants(local, GapPolicy::Next, FoldPolicy::First);
        Ok(Instant::from_secs(instants.next().unwrap_or(local.0)))
    }

    /// The schedules in a text or a job file.
    pub(crate) fn schedules(&self, given: &str, session: &CliSession<'_>) -> Result<Vec<ResolvedSchedule>, CliError> {
        match job_file(given) {
            Some(path) => self.of_file(&path, session),
            None => self.of_text(given, session),
        }
    }

    fn of_text(&self, text: &str, session: &CliSession<'_>) -> Result<Vec<ResolvedSchedule>, CliError> {
        let source = ScheduleSource { file: "schedule", text, typed: true };
        let read = read_schedule(text, &Options { zones: session.zones });
        let (schedules, places) = read
            .map_err(|mistakes| if Path::new(text).is_dir() { is_directory(text) } else { source.failure(mistakes) })?;
        let owner = self.given_owner()?.unwrap_or(ScheduleOwner::NoJob);
        let around = match &self.root {
            Some(root) => self.calendars_below(root, &schedules, session)?,
            None => DirectoryReport::default(),
        };
        let compiled = self.compile(&owner, schedules, &around.calendars, session);
        compiled.map_err(|wrong| self.uncompiled(wrong, &source, &places, around))
    }

    fn of_file(&self, path: &Path, session: &CliSession<'_>) -> Result<Vec<ResolvedSchedule>, CliError> {
        let shown = path.display().to_string();
        let text = directory::read_text(&shown, path).map_err(|unreadable| {
            let UnreadableFile { mistake, text } = *unreadable;
            ScheduleSource { file: &shown, text: &text, typed: false }.failure(vec![mistake])
        })?;
        let source = ScheduleSource { file: &shown, text: &text, typed: false };
        let read = read_job(&shown, &text, &Options { zones: session.zones });
        let Some(job) = read.job else {
            return Err(source.failure(read.mistakes));
        };
        let root = self.root.clone().unwrap_or_else(|| guess_root(path));
        let around = self.calendars_below(&root, &job.schedules, session)?;
        let owner = self.owner_of(path, &root)?;
        let compiled = self.compile(&owner, effective_schedules(&job), &around.calendars, session);
        compiled.map_err(|wrong| self.uncompiled(wrong, &source, &read.places, around))
    }

    /// The schedules of a loaded job, or `None` if one of them names an invalid calendar, which the directory reports.
    pub(crate) fn of_job(
        &self,
        id: &JobId,
        job: &Job,
        calendars: &CalendarSet,
        session: &CliSession<'_>,
    ) -> Option<Vec<ResolvedSchedule>> {
        let owner = ScheduleOwner::Known(id.to_string());
        self.compile(&owner, effective_schedules(job), calendars, session).ok()
    }

    /// Options for loading a directory.
    pub(crate) fn loading<'a>(&self, zone: &'a Zone, session: &CliSession<'a>) -> directory::Options<'a> {
        directory::Options { zones: session.zones, zone, now: session.now }
    }

    fn given_owner(&self) -> Result<Option<ScheduleOwner>, CliError> {
        let id = self.job.as_deref().map(JobId::parse).transpose();
        let id = id.map_err(|error| CliError::flag("--job", error))?;
        Ok(id.map(|id| ScheduleOwner::Known(id.to_string())))
    }

    /// The job id of a file below a given or guessed root.
    fn owner_of(&self, file: &Path, root: &Path) -> Result<ScheduleOwner, CliError> {
        if let Some(owner) = self.given_owner()? {
            return Ok(owner);
        }
        match id_below(root, file) {
            id if self.root.is_none() => Ok(ScheduleOwner::Guessed(id.unwrap_or_default())),
            Some(id) => Ok(ScheduleOwner::Known(id)),
            None => {
                let message = format!("--root: {} is not below {}", file.display(), root.display());
                Err(CliError::usage(message, "pass the directory that contains all jobs, or the job id with --job"))
            }
        }
    }

    /// Loads only the calendars of a directory. An error in a calendar matters only if a schedule names it.
    fn calendars_below(
        &self,
        dir: &Path,
        schedules: &[JobSchedule],
        session: &CliSession<'_>,
    ) -> Result<DirectoryReport, CliError> {
        if !dir.is_dir() {
            let message = format!("--root: there is no directory {}", shortened(&dir.display().to_string()));
            return Err(CliError::usage(message, "pass the directory that contains the jobs and their calendars"));
        }
        // A guessed directory may be large and unrelated, so walk it only if a schedule names a calendar.
        if schedules.iter().all(|schedule| schedule.spec.calendar.is_none()) {
            return Ok(DirectoryReport::default());
        }
        let zone = self.zone(session)?;
        Ok(directory::load_calendars(dir, &self.loading(&zone, session)))
    }

    /// Compiles the schedules, or returns all that cannot be compiled.
    fn compile(
        &self,
        owner: &ScheduleOwner,
        schedules: Vec<JobSchedule>,
        calendars: &CalendarSet,
        session: &CliSession<'_>,
    ) -> Result<Vec<ResolvedSchedule>, Vec<ScheduleCompileError>> {
        // An unknown zone was refused before.
        let zone = session.zones.get(&self.timezone).unwrap_or_else(|_| Zone::utc());
        let around = CompileContext { zones: session.zones, zone: &zone, calendars, job: owner.id() };
        let (mut asked, mut wrong) = (Vec::new(), Vec::new());
        for (index, schedule) in schedules.into_iter().enumerate() {
            match Schedule::compile(&schedule.spec, around) {
                Ok(compiled) => {
                    asked.push(ResolvedSchedule { owner: owner.clone(), written: schedule, schedule: compiled });
                }
                Err(error) => wrong.push(ScheduleCompileError { index, spec: schedule.spec, error }),
            }
        }
        if wrong.is_empty() { Ok(asked) } else { Err(wrong) }
    }

    fn uncompiled(
        &self,
        wrong: Vec<ScheduleCompileError>,
        source: &ScheduleSource<'_>,
        places: &JobPlaces,
        around: DirectoryReport,
    ) -> CliError {
        let needs_broken = |wrong: &ScheduleCompileError| {
            let mut names = wrong.spec.calendar.iter().flat_map(|calendar| calendar.names());
            wrong.error.key == "calendar" && names.any(|name| around.broken_calendars.contains(name))
        };
        let (for_calendars, own): (Vec<_>, Vec<_>) = wrong.into_iter().partition(needs_broken);
        let own = own.into_iter().map(|ScheduleCompileError { index, error: CompileError { key, error }, .. }| {
            let hint = error.hint.map(|hint| match key {
                "calendar" if self.root.is_none() => {
                    format!("{hint}; pass the directory that contains the calendars with --root")
                }
                _ => hint,
            });
            Mistake { hint, ..Mistake::new(source.file, places.of_schedule(index, key), error.message) }
        });
        let mut failure = source.failure(own.collect());
        // If a schedule fails because of an invalid calendar, report the errors in the calendar instead.
        if let CliError::Mistakes { mistakes, texts, typed } = &mut failure
            && !for_calendars.is_empty()
        {
            mistakes.extend(around.mistakes);
            texts.extend(around.texts);
            *typed = false;
        }
        failure
    }
}

/// A schedule that is well-formed but cannot be compiled.
struct ScheduleCompileError {
    index: usize,
    spec: ScheduleSpec,
    error: CompileError,
}

/// The text that schedules were read from.
struct ScheduleSource<'a> {
    file: &'a str,
    text: &'a str,
    /// Whether it was an argument of the command line.
    typed: bool,
}

impl ScheduleSource<'_> {
    fn failure(&self, mistakes: Vec<Mistake>) -> CliError {
        let texts = BTreeMap::from([(self.file.to_owned(), self.text.to_owned())]);
        CliError::Mistakes { mistakes, texts, typed: self.typed }
    }
}

fn is_directory(given: &str) -> CliError {
    let message = format!("{given} is a directory, not a schedule or a job file");
    CliError::usage(message, format!("pass one of its files; `cronhold lint {given}` checks all of them"))
}

/// The path of a job file, if the argument looks like one or names an existing file.
fn job_file(given: &str) -> Option<PathBuf> {
    let path = Path::new(given);
    let named_like_one = path.extension().is_some_and(|end| end == "yaml" || end == "yml") && !given.contains('\n');
    (named_like_one && !given.trim_start().starts_with('{') || path.is_file()).then(|| path.to_owned())
}

/// The schedules of a job. None of them is in effect if the job is disabled.
fn effective_schedules(job: &Job) -> Vec<JobSchedule> {
    let schedules = job.schedules.iter().cloned();
    schedules.map(|schedule| JobSchedule { enabled: job.enables(&schedule), ..schedule }).collect()
}
