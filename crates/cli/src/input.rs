//! What people give as SCHEDULE, JOBFILE or DIR, turned into schedules that can be asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use cronhold_core::job::{Job, Schedule as JobSchedule};
use cronhold_jobfile::{Mistake, Options, directory, read_job, read_schedule};
use cronhold_schedule::calendar::Calendars;
use cronhold_schedule::text::shortened;
use cronhold_schedule::{Bound, CompileError, Fold, Gap, Instant, Schedule, Spec, Surroundings, Zone};

use crate::{Failure, Session};

/// What decides how a schedule is read, shared by all verbs that take one.
#[derive(Debug, Args)]
pub(crate) struct Reading {
    /// Zone of schedules that name none
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) timezone: String,
    /// Job id that `H` and jitter are derived from; a job file has its own
    #[arg(long, value_name = "ID")]
    pub(crate) job: Option<String>,
    /// Directory with the calendars (*.cal, *.ics) that schedules may name; for a job file, the nearest directory above
    /// it that has a `calendars` folder
    #[arg(long, value_name = "DIR")]
    pub(crate) calendars: Option<PathBuf>,
}

/// One schedule, ready to be asked.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The job's id; empty for a text without one.
    pub(crate) job: String,
    pub(crate) name: Option<String>,
    pub(crate) spec: Spec,
    pub(crate) args: BTreeMap<String, String>,
    pub(crate) enabled: bool,
    pub(crate) schedule: Schedule,
}

impl Asked {
    /// The schedule in words, with its zone also where it names none.
    pub(crate) fn words(&self) -> String {
        let mut spec = self.spec.clone();
        let zone = self.schedule.zone().name();
        spec.zone = Some(zone.to_owned()).filter(|zone| self.spec.zone.is_some() || zone != "UTC");
        spec.words(&self.job)
    }
}

impl Reading {
    /// The zone of schedules that name none.
    pub(crate) fn zone(&self, session: &Session<'_>) -> Result<Zone, Failure> {
        session
            .zones
            .get(&self.timezone)
            .map_err(|error| Failure::Usage { message: format!("--timezone: {}", error.message), hint: error.hint })
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
        let wrong = |error: cronhold_schedule::TextError| Failure::Usage {
            message: format!("{flag}: {}", error.message),
            hint: error.hint,
        };
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
        let fail = |mistakes| Failure::Mistakes { mistakes, text: text.to_owned(), typed: true };
        let schedules = read_schedule(text).map_err(fail)?;
        let calendars = match &self.calendars {
            Some(dir) => self.calendars_below(dir, session)?,
            None => Calendars::new(),
        };
        let job = self.job.clone().unwrap_or_default();
        self.compile(&job, schedules, &calendars, session).map_err(|(_, wrong)| {
            let place = match wrong.key {
                "timezone" if text.trim_start().starts_with(['C', 'T']) => Spec::zone_place(text),
                _ => text.find(wrong.key).map_or(0..text.len(), |at| at..text.len()),
            };
            fail(vec![mistake("schedule", place, wrong)])
        })
    }

    fn of_file(&self, path: &Path, session: &Session<'_>) -> Result<Vec<Asked>, Failure> {
        let shown = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| Failure::refused(format!("cannot read {shown}: {error}"), "give a job file in YAML"))?;
        let fail = |mistakes| Failure::Mistakes { mistakes, text: text.clone(), typed: false };
        let read = read_job(&shown, &text, &Options { zones: session.zones });
        let Some(job) = read.job else {
            return Err(fail(read.mistakes));
        };
        let root = self.calendars.clone().unwrap_or_else(|| root_of(path));
        let calendars = self.calendars_below(&root, session)?;
        let id = self.job.clone().unwrap_or_else(|| id_below(&root, path));
        self.compile(&id, job.schedules, &calendars, session).map_err(|(index, wrong)| {
            fail(vec![mistake(&shown, read.places.get(&format!("schedule[{index}]")), wrong)])
        })
    }

    /// The schedules of a job that was loaded with its directory.
    pub(crate) fn of_job(
        &self,
        id: &str,
        job: &Job,
        calendars: &Calendars,
        session: &Session<'_>,
    ) -> Result<Vec<Asked>, Failure> {
        self.compile(id, job.schedules.clone(), calendars, session).map_err(|(_, wrong)| Failure::Refused {
            message: format!("{id}: {}", wrong.error.message),
            hint: wrong.error.hint,
        })
    }

    /// What loading a directory depends on.
    pub(crate) fn loading<'a>(&self, zone: &'a Zone, session: &Session<'a>) -> directory::Options<'a> {
        directory::Options { zones: session.zones, zone, now: session.now }
    }

    fn calendars_below(&self, dir: &Path, session: &Session<'_>) -> Result<Calendars, Failure> {
        if !dir.is_dir() {
            let shown = dir.display().to_string();
            let message = format!("there is no directory {}", shortened(&shown));
            return Err(Failure::usage(message, "give one with *.cal or *.ics files"));
        }
        let zone = self.zone(session)?;
        let mut loaded = directory::load_calendars(dir, &self.loading(&zone, session));
        match loaded.mistakes.pop() {
            None => Ok(loaded.calendars),
            Some(mistake) => {
                let text = loaded.text_of(&mistake).to_owned();
                Err(Failure::Mistakes { mistakes: vec![mistake], text, typed: false })
            }
        }
    }

    fn compile(
        &self,
        job: &str,
        schedules: Vec<JobSchedule>,
        calendars: &Calendars,
        session: &Session<'_>,
    ) -> Result<Vec<Asked>, (usize, CompileError)> {
        // An unknown default zone was refused before; here it can only be known.
        let zone = session.zones.get(&self.timezone).unwrap_or_else(|_| Zone::utc());
        let around = Surroundings { zones: session.zones, zone: &zone, calendars, job };
        let asked = schedules.into_iter().enumerate().map(|(index, schedule)| {
            let compiled = Schedule::compile(&schedule.spec, around).map_err(|wrong| (index, wrong))?;
            let JobSchedule { name, spec, args, enabled, .. } = schedule;
            Ok(Asked { job: job.to_owned(), name, spec, args, enabled, schedule: compiled })
        });
        asked.collect()
    }
}

/// The path of a job file, when what was given looks like one or is one.
fn job_file(given: &str) -> Option<PathBuf> {
    let path = Path::new(given);
    let named_like_one = path.extension().is_some_and(|end| end == "yaml" || end == "yml") && !given.contains('\n');
    (named_like_one && !given.trim_start().starts_with('{') || path.is_file()).then(|| path.to_owned())
}

/// The job directory that a file belongs to: the nearest above it with a `calendars` folder, else its own.
fn root_of(file: &Path) -> PathBuf {
    let above = file.ancestors().skip(1).take(16);
    let with_calendars = above.map(own_or_here).find(|dir| dir.join("calendars").is_dir());
    with_calendars.unwrap_or_else(|| file.parent().map(own_or_here).unwrap_or_default())
}

/// A relative path's last ancestor is empty, which means the directory we are in.
fn own_or_here(dir: &Path) -> PathBuf {
    if dir.as_os_str().is_empty() { PathBuf::from(".") } else { dir.to_owned() }
}

fn id_below(root: &Path, file: &Path) -> String {
    let below = file.strip_prefix(root).unwrap_or(file).with_extension("");
    below.to_string_lossy().into_owned()
}

fn mistake(file: &str, at: std::ops::Range<usize>, wrong: CompileError) -> Mistake {
    let mistake = Mistake::new(file, at, wrong.error.message);
    match wrong.error.hint {
        Some(hint) => mistake.hint(hint),
        None => mistake,
    }
}
