//! Checks that need more than one file: references to jobs and params, calendars, missing values of runs, cycles,
//! and the sizes of pools. They
//! are pure functions of the loaded jobs, so that the API uses them as well.

mod cycles;
mod pools;
mod references;
mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use cronhold_core::template::Bindings;
use cronhold_core::{Job, JobId};
use cronhold_schedule::calendar::CalendarSet;
use cronhold_schedule::text::did_you_mean;
use cronhold_schedule::{Instant, Zone, ZoneRegistry};

use super::{LoadedJob, parallel};
use crate::mistake::Mistake;
use crate::yaml::MISTAKES_MAX;

/// Most unknown jobs for which a similar id is suggested. A suggestion compares all ids.
const GUESSES_MAX: usize = 100;

/// Most templates of one job that are bound by the checks; a job with more is loaded without checking the rest.
const BINDS_MAX: usize = 5_000;

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

/// All mistakes of a set of jobs, in the order of the jobs. The ids in `broken` exist, but their definitions are unknown.
pub fn check(jobs: &BTreeMap<JobId, LoadedJob>, broken: &BTreeSet<JobId>, around: &CheckContext<'_>) -> Vec<Mistake> {
    let set = JobSet::new(jobs, broken, around);
    let entries: Vec<(&JobId, &LoadedJob)> = jobs.iter().collect();
    let mut found = parallel::map(&entries, |(id, loaded)| {
        let mut checking = set.checking(id, loaded);
        checking.references();
        checking.windows();
        checking.triggers();
        checking.samples();
        checking.findings
    });
    guess(&mut found, &set);
    let waits = entries.iter().zip(&mut found).map(|((id, _), findings)| (*id, std::mem::take(&mut findings.waits)));
    let waits: Vec<cycles::Waits<'_>> = waits.collect();
    let cycles = cycles::check(jobs, &waits);
    found.into_iter().flat_map(|findings| findings.mistakes).chain(cycles).chain(pools::check(jobs)).collect()
}

/// Unknown jobs in jobs that have mistakes of their own. Nothing else is checked in a draft, because it would repeat those
/// mistakes.
pub(super) fn check_drafts(
    drafts: &BTreeMap<JobId, LoadedJob>,
    jobs: &BTreeMap<JobId, LoadedJob>,
    broken: &BTreeSet<JobId>,
    around: &CheckContext<'_>,
) -> Vec<Mistake> {
    let set = JobSet::new(jobs, broken, around);
    let mut found: Vec<JobFindings> = Vec::with_capacity(drafts.len());
    for (id, loaded) in drafts {
        let mut checking = set.checking(id, loaded);
        checking.unknown_jobs();
        found.push(checking.findings);
    }
    guess(&mut found, &set);
    found.into_iter().flat_map(|findings| findings.mistakes).collect()
}

/// All jobs and their context.
struct JobSet<'a> {
    jobs: &'a BTreeMap<JobId, LoadedJob>,
    broken: &'a BTreeSet<JobId>,
    around: &'a CheckContext<'a>,
    /// Zones and calendars for templates, without any name bound.
    world: Bindings,
}

impl<'a> JobSet<'a> {
    fn new(jobs: &'a BTreeMap<JobId, LoadedJob>, broken: &'a BTreeSet<JobId>, around: &'a CheckContext<'a>) -> Self {
        let world = Bindings::new(Arc::clone(around.zones), Arc::new(around.calendars.clone()));
        Self { jobs, broken, around, world }
    }

    fn checking(&'a self, id: &'a JobId, loaded: &'a LoadedJob) -> JobCheck<'a> {
        JobCheck { set: self, id, loaded, findings: JobFindings::default() }
    }
}

/// One job being checked.
struct JobCheck<'a> {
    set: &'a JobSet<'a>,
    id: &'a JobId,
    loaded: &'a LoadedJob,
    findings: JobFindings,
}

/// What one job's check found.
#[derive(Default)]
struct JobFindings {
    mistakes: Vec<Mistake>,
    /// Indexes of the mistakes about unknown jobs, with the ids.
    unknown: Vec<(usize, String)>,
    /// Jobs that this one waits for, with the path of the condition.
    waits: Vec<(JobId, String)>,
    /// Templates bound so far.
    bound: usize,
}

impl<'a> JobCheck<'a> {
    fn job(&self) -> &'a Job {
        &self.loaded.job
    }

    fn report(&mut self, at: Range<usize>, message: impl Into<String>, hint: Option<String>) {
        let mistake = Mistake { hint, ..Mistake::new(&*self.loaded.file, at, message) };
        // One template can name the same thing for several values of a param.
        if !self.is_full() && !self.findings.mistakes.contains(&mistake) {
            self.findings.mistakes.push(mistake);
        }
    }

    /// Reports an unknown job.
    fn report_unknown(&mut self, at: Range<usize>, id: &JobId) {
        let before = self.findings.mistakes.len();
        self.report(at, format!("there is no job `{id}`"), None);
        if self.findings.mistakes.len() > before {
            self.findings.unknown.push((before, id.to_string()));
        }
    }

    fn is_full(&self) -> bool {
        self.findings.mistakes.len() >= MISTAKES_MAX
    }

    /// Takes one template out of the budget. Returns false if the budget is used up.
    fn may_bind(&mut self) -> bool {
        self.findings.bound += 1;
        self.findings.bound <= BINDS_MAX
    }
}

/// Adds suggestions to mistakes about unknown jobs.
fn guess(found: &mut [JobFindings], set: &JobSet<'_>) {
    let mut left = GUESSES_MAX;
    for JobFindings { mistakes, unknown, .. } in found {
        for (index, id) in unknown.iter().take(left) {
            let ids = set.jobs.keys().chain(set.broken).map(JobId::as_str);
            let meant = did_you_mean(id, ids).map(|meant| format!("did you mean `{meant}`?"));
            mistakes[*index].hint = meant;
        }
        left = left.saturating_sub(unknown.len());
    }
}
