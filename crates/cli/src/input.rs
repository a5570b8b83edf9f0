//! What people give as SCHEDULE, JOBFILE or DIR, turned into schedules that can be asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use cronhold_core::JobId;
use cronhold_core::job::Schedule as JobSchedule;
use cronhold_jobfile::directory::{self, Directory, LoadedJob, UnreadableFile};
use cronhold_jobfile::{JobPlaces, Mistake, Options, read_job, read_schedule};
use cronhold_schedule::calendar::Calendars;
use cronhold_schedule::text::shortened;
use cronhold_schedule::{Bound, CompileError, Fold, Gap, Instant, Schedule, Spec, Surroundings, Zone};

use crate::asked::{Asked, Owner};
use crate::job_root::{guess_root, id_below};
use crate::{Failure, Session};

/// What decides how a schedule is read, shared by all verbs that take one.
#[derive(Debug, Args)]
pub(crate) struct Reading {
    /// Zone of schedules that name none
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) timezone: String,
    /// Job directory: schedules may name its calendars (*.cal, *.ics), and a file's path below it is the job's id. For a
    /// job file it is guessed, if not given: the nearest directory above that has a `calendars` folder, else its own
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Job id that `H` and jitter are derived from, if not the file's path below the job directory
    #[arg(long, value_name = "ID")]
    pub(crate) job: Option<String>,
}

impl Reading {
    /// The zone of schedules that name none.
    pub(crate) fn zone(&self, session: &Session<'_>) -> Result<Zone, Failure> {
        session.zones.get(&self.timezone).map_err(|error| Failure::flag("--timezone", error))
    }

    /// A point in time as people type it, or the time at which they typed; local ones are in the zone of `--timezone`.
    pub(crate) fn instant_or_now(
        &self,
        flag: &str,
        text: Option<&str>,
        session: &Session<'_>,
    ) -> Result<Instant, Failure> {
        let Some(text) = text else {
            return Ok(session.now);
        };
        let wrong = |error| Failure::flag(flag, error);
        let local = match Bound::parse(text).map_err(wrong)? {
            Bound::Instant(_) => return Instant::parse(text).map_err(wrong),
            Bound::Local(local) => local,
            Bound::Day(day) => day.midnight(),
        };
        let mut instants = self.zone(session)?.instants(local, Gap::Next, Fold::First);
        Ok(Instant::from_secs(instants.next().unwrap_or(local.0)))
    }

    /// The schedules that a text or a job file holds.
    pub(crate) fn schedules(&self, given: &str, session: &Session<'_>) -> Result<Vec<Asked>, Failure> {
        match job_file(given) {
            Some(path) => self.of_file(&path, session),
            None => self.of_text(given, session),
        }
    }

    fn of_text(&self, text: &str, session: &Session<'_>) -> Result<Vec<Asked>, Failure> {
        let source = Source { file: "schedule", text, typed: true };
        let read = read_schedule(text, &Options { zones: session.zones });
        let (schedules, places) = read
            .map_err(|mistakes| if Path::new(text).is_dir() { is_directory(text) } else { source.failure(mistakes) })?;
        let owner = self.given_owner()?.unwrap_or(Owner::Nobody);
        let around = match &self.root {
            Some(root) => self.calendars_below(root, &schedules, session)?,
            None => Directory::default(),
        };
        let compiled = self.compile(&owner, schedules, &around.calendars, session);
        compiled.map_err(|wrong| self.uncompiled(wrong, &source, &places, around))
    }

    fn of_file(&self, path: &Path, session: &Session<'_>) -> Result<Vec<Asked>, Failure> {
        let shown = path.display().to_string();
        let text = directory::read_text(&shown, path).map_err(|unreadable| {
            let UnreadableFile { mistake, text } = *unreadable;
            Source { file: &shown, text: &text, typed: false }.failure(vec![mistake])
        })?;
        let source = Source { file: &shown, text: &text, typed: false };
        let read = read_job(&shown, &text, &Options { zones: session.zones });
        let Some(job) = read.job else {
            return Err(source.failure(read.mistakes));
        };
        let root = self.root.clone().unwrap_or_else(|| guess_root(path));
        let around = self.calendars_below(&root, &job.schedules, session)?;
        let owner = self.owner_of(path, &root)?;
        let compiled = self.compile(&owner, job.schedules, &around.calendars, session);
        compiled.map_err(|wrong| self.uncompiled(wrong, &source, &read.places, around))
    }

    /// The schedules of a job that was loaded with its directory; none if one of them names a calendar with mistakes,
    /// which the directory knows of.
    pub(crate) fn of_job(
        &self,
        id: &JobId,
        loaded: &LoadedJob,
        calendars: &Calendars,
        session: &Session<'_>,
    ) -> Option<Vec<Asked>> {
        let owner = Owner::Known(id.to_string());
        self.compile(&owner, loaded.job.schedules.clone(), calendars, session).ok()
    }

    /// What loading a directory depends on.
    pub(crate) fn loading<'a>(&self, zone: &'a Zone, session: &Session<'a>) -> directory::Options<'a> {
        directory::Options { zones: session.zones, zone, now: session.now }
    }

    fn given_owner(&self) -> Result<Option<Owner>, Failure> {
        let id = self.job.as_deref().map(JobId::parse).transpose();
        let id = id.map_err(|error| Failure::flag("--job", error))?;
        Ok(id.map(|id| Owner::Known(id.to_string())))
    }

    /// Whose a file is that lies below a root, given or guessed.
    fn owner_of(&self, file: &Path, root: &Path) -> Result<Owner, Failure> {
        if let Some(owner) = self.given_owner()? {
            return Ok(owner);
        }
        match id_below(root, file) {
            id if self.root.is_none() => Ok(Owner::Guessed(id.unwrap_or_default())),
            Some(id) => Ok(Owner::Known(id)),
            None => {
                let message = format!("--root: {} does not lie below {}", file.display(), root.display());
                Err(Failure::usage(message, "give the directory that holds all jobs, or the job's id with --job"))
            }
        }
    }

    /// The calendars of a directory, and no job. A mistake in one of them is only a failure when it is asked for.
    fn calendars_below(
        &self,
        dir: &Path,
        schedules: &[JobSchedule],
        session: &Session<'_>,
    ) -> Result<Directory, Failure> {
        if !dir.is_dir() {
            let message = format!("--root: there is no directory {}", shortened(&dir.display().to_string()));
            return Err(Failure::usage(message, "give the directory that holds the jobs and their calendars"));
        }
        // A directory that is only guessed can be a large one of something else, so it is not walked in vain.
        if schedules.iter().all(|schedule| schedule.spec.calendar.is_none()) {
            return Ok(Directory::default());
        }
        let zone = self.zone(session)?;
        Ok(directory::load_calendars(dir, &self.loading(&zone, session)))
    }

    /// The schedules ready to be asked, or all that cannot be.
    fn compile(
        &self,
        owner: &Owner,
        schedules: Vec<JobSchedule>,
        calendars: &Calendars,
        session: &Session<'_>,
    ) -> Result<Vec<Asked>, Vec<Uncompiled>> {
        // An unknown default zone was refused before; here it can only be known.
        let zone = session.zones.get(&self.timezone).unwrap_or_else(|_| Zone::utc());
        let around = Surroundings { zones: session.zones, zone: &zone, calendars, job: owner.id() };
        let (mut asked, mut wrong) = (Vec::new(), Vec::new());
        for (index, schedule) in schedules.into_iter().enumerate() {
            match Schedule::compile(&schedule.spec, around) {
                Ok(compiled) => {
                    asked.push(Asked { owner: owner.clone(), written: schedule, schedule: compiled });
                }
                Err(error) => wrong.push(Uncompiled { index, spec: schedule.spec, error }),
            }
        }
        if wrong.is_empty() { Ok(asked) } else { Err(wrong) }
    }

    fn uncompiled(
        &self,
        wrong: Vec<Uncompiled>,
        source: &Source<'_>,
        places: &JobPlaces,
        around: Directory,
    ) -> Failure {
        let needs_broken = |wrong: &Uncompiled| {
            let mut names = wrong.spec.calendar.iter().flat_map(|calendar| calendar.names());
            wrong.error.key == "calendar" && names.any(|name| around.broken_calendars.contains(name))
        };
        let (for_calendars, own): (Vec<_>, Vec<_>) = wrong.into_iter().partition(needs_broken);
        let own = own.into_iter().map(|Uncompiled { index, error: CompileError { key, error }, .. }| {
            let hint = error.hint.map(|hint| match key {
                "calendar" if self.root.is_none() => {
                    format!("{hint}; --root gives the directory that calendars are in")
                }
                _ => hint,
            });
            Mistake { hint, ..Mistake::new(source.file, places.of_schedule(index, key), error.message) }
        });
        let mut failure = source.failure(own.collect());
        // That a calendar with mistakes cannot be asked is no mistake of the schedule; what is wrong in it is shown.
        if let Failure::Mistakes { mistakes, texts, typed } = &mut failure
            && !for_calendars.is_empty()
        {
            mistakes.extend(around.mistakes);
            texts.extend(around.texts);
            *typed = false;
        }
        failure
    }
}

/// A schedule that reads well and cannot be asked.
struct Uncompiled {
    index: usize,
    spec: Spec,
    error: CompileError,
}

/// What schedules were read from.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
    /// Whether it stood on the command line itself.
    typed: bool,
}

impl Source<'_> {
    fn failure(&self, mistakes: Vec<Mistake>) -> Failure {
        let texts = BTreeMap::from([(self.file.to_owned(), self.text.to_owned())]);
        Failure::Mistakes { mistakes, texts, typed: self.typed }
    }
}

fn is_directory(given: &str) -> Failure {
    let message = format!("{given} is a directory, not a schedule or a job file");
    Failure::usage(message, format!("give one file in it; `cronhold lint {given}` looks at all of them"))
}

/// The path of a job file, when what was given looks like one or is one.
fn job_file(given: &str) -> Option<PathBuf> {
    let path = Path::new(given);
    let named_like_one = path.extension().is_some_and(|end| end == "yaml" || end == "yml") && !given.contains('\n');
    (named_like_one && !given.trim_start().starts_with('{') || path.is_file()).then(|| path.to_owned())
}
