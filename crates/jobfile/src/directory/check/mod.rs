//! The checks of jobs. `own` needs only the job itself: its triggers, a sample run of each schedule, and the ids that
//! its references lead to. `links` checks these references against other jobs, of which only outlines are known, `cycles`
//! finds jobs that wait for each other, and `pools` compares the sizes of pools. All of them are pure functions, so that
//! the API uses them as well.

mod cycles;
mod links;
mod own;
mod pools;
mod samples;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use cronhold_core::template::Bindings;
use cronhold_core::{Job, JobId};
use cronhold_schedule::calendar::CalendarSet;
use cronhold_schedule::text::did_you_mean;
use cronhold_schedule::{Instant, Zone, ZoneRegistry};

pub(super) use cycles::find_cycles;
pub(super) use links::{check_draft, check_links};
pub use own::named_jobs;
pub(super) use own::{OwnFindings, check_own};
pub(super) use pools::check_pools;

use super::LoadedJob;
use super::outline::JobOutline;
use crate::mistake::Mistake;
use crate::read::JobPlaces;
use crate::yaml::MISTAKES_MAX;

/// Most unknown jobs for which a similar id is suggested. A suggestion compares all ids.
const GUESSES_MAX: usize = 100;

/// What the checks depend on besides the jobs.
#[derive(Debug, Clone, Copy)]
pub struct CheckContext<'a> {
    /// Time zones that a schedule can name.
    pub zones: &'a Arc<ZoneRegistry>,
    /// The zone of schedules that do not name one.
    pub zone: &'a Zone,
    /// Calendars that a schedule can name.
    pub calendars: &'a CalendarSet,
    /// Start of the search for a sample occurrence of each schedule.
    pub now: Instant,
}

impl CheckContext<'_> {
    /// Zones and calendars for templates, without any name bound.
    pub(super) fn bindings(&self) -> Bindings {
        Bindings::new(Arc::clone(self.zones), Arc::new(self.calendars.clone()))
    }
}

/// All mistakes of one job, among other jobs whose definitions are unknown.
pub fn check_one(id: &JobId, loaded: &LoadedJob, others: &BTreeSet<JobId>, around: &CheckContext<'_>) -> Vec<Mistake> {
    let OwnFindings { mut mistakes, params, links, pools } = check_own(id, loaded, around, &around.bindings());
    let outline = JobOutline::new(&loaded.job, params, links, pools);
    let jobs = JobIndex::new(vec![(Cow::Borrowed(id.as_str()), &outline)], vec![others]);
    let mut found = vec![check_links(&outline, &loaded.file, &loaded.places, &jobs)];
    guess(&mut found, &jobs);
    mistakes.extend(found.into_iter().flat_map(|findings| findings.mistakes));
    let conflicts = find_cycles(&jobs).into_iter().chain(check_pools(&jobs));
    mistakes.extend(conflicts.map(|conflict| conflict.mistake(&loaded.file, &loaded.places)));
    mistakes
}

/// All jobs that exist, by id.
pub(super) struct JobIndex<'a> {
    /// Jobs in the order of their ids.
    jobs: Vec<(Cow<'a, str>, &'a JobOutline)>,
    /// Ids of jobs that exist, but whose definitions are unknown.
    others: Vec<&'a BTreeSet<JobId>>,
}

/// What is known about a job.
enum KnownJob<'a> {
    Outline(&'a JobOutline),
    /// It exists.
    Unknown,
    Missing,
}

impl<'a> JobIndex<'a> {
    /// `jobs` must be in the order of their ids.
    pub(super) fn new(jobs: Vec<(Cow<'a, str>, &'a JobOutline)>, others: Vec<&'a BTreeSet<JobId>>) -> Self {
        debug_assert!(jobs.is_sorted_by(|(a, _), (b, _)| a < b));
        Self { jobs, others }
    }

    fn number(&self, id: &JobId) -> Option<usize> {
        self.jobs.binary_search_by(|(own, _)| (**own).cmp(id.as_str())).ok()
    }

    fn find(&self, id: &JobId) -> KnownJob<'a> {
        match self.number(id) {
            Some(number) => KnownJob::Outline(self.jobs[number].1),
            None if self.others.iter().any(|others| others.contains(id)) => KnownJob::Unknown,
            None => KnownJob::Missing,
        }
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        let others = self.others.iter().flat_map(|others| others.iter()).map(JobId::as_str);
        self.jobs.iter().map(|(id, _)| &**id).chain(others)
    }
}

/// The mistakes that the check of one job's references found.
#[derive(Debug, Default)]
pub(super) struct LinkFindings {
    pub(super) mistakes: Vec<Mistake>,
    /// Indexes of the mistakes about unknown jobs, with the ids.
    unknown: Vec<(usize, String)>,
}

/// Jobs that contradict each other. One of them gets the mistake.
pub(super) struct JobConflict {
    /// The number of that job in the index.
    pub(super) number: usize,
    /// Path of the value in its file.
    path: String,
    message: String,
    hint: &'static str,
}

impl JobConflict {
    /// The mistake in the file of the job.
    pub(super) fn mistake(&self, file: &str, places: &JobPlaces) -> Mistake {
        Mistake::new(file, places.get(&self.path), self.message.clone()).hint(self.hint)
    }
}

/// Adds suggestions to mistakes about unknown jobs.
pub(super) fn guess(found: &mut [LinkFindings], jobs: &JobIndex<'_>) {
    let mut left = GUESSES_MAX;
    for LinkFindings { mistakes, unknown } in found {
        for (index, id) in unknown.iter().take(left) {
            let meant = did_you_mean(id, jobs.ids()).map(|meant| format!("did you mean `{meant}`?"));
            mistakes[*index].hint = meant;
        }
        left = left.saturating_sub(unknown.len());
    }
}

/// Collects the mistakes of one file.
struct MistakeList<'a> {
    file: &'a str,
    places: &'a JobPlaces,
    found: Vec<Mistake>,
}

impl<'a> MistakeList<'a> {
    fn new(file: &'a str, places: &'a JobPlaces) -> Self {
        Self { file, places, found: Vec::new() }
    }

    /// Adds a mistake.
    fn report(&mut self, at: Range<usize>, message: impl Into<String>, hint: Option<String>) {
        self.push(Mistake { hint, ..Mistake::new(self.file, at, message) });
    }

    /// Adds a mistake. Returns its index; `None` if the list has it already, or is full.
    fn push(&mut self, mistake: Mistake) -> Option<usize> {
        // One template can name the same thing for several values of a param.
        if self.found.len() >= MISTAKES_MAX || self.found.contains(&mistake) {
            return None;
        }
        self.found.push(mistake);
        Some(self.found.len() - 1)
    }
}

/// A job and what was found so far.
struct JobCheck<'a> {
    id: &'a JobId,
    job: &'a Job,
    around: &'a CheckContext<'a>,
    world: &'a Bindings,
    mistakes: MistakeList<'a>,
    /// Templates bound so far.
    bound: usize,
}
