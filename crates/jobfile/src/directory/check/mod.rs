//! What no file shows alone: jobs and params that are named in other jobs, calendars, values that runs would lack, and
//! circles. A pure function of the loaded jobs, so that whoever gets jobs another way can ask the same questions.

mod cycles;
mod references;
mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use cronhold_core::template::Bindings;
use cronhold_core::{Job, JobId};
use cronhold_schedule::calendar::Calendars;
use cronhold_schedule::text::did_you_mean;
use cronhold_schedule::{Instant, Zone, Zones};

use super::{LoadedJob, parallel};
use crate::mistake::Mistake;
use crate::yaml::MISTAKES_MAX;

/// So many unknown jobs get a guess at what was meant. A guess looks at every id, and a directory that names hundreds of
/// jobs that are not there is not mistyped.
const GUESSES_MAX: usize = 100;

/// So many templates of one job are bound to see whether they can be; a job that has more is still loaded.
const BINDS_MAX: usize = 5_000;

/// What the checks need besides the jobs.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// Zones that can be named.
    pub zones: &'a Arc<Zones>,
    /// The zone of schedules that name none.
    pub zone: &'a Zone,
    /// Calendars that can be named.
    pub calendars: &'a Calendars,
    /// From when on a sample occurrence of each schedule is taken.
    pub now: Instant,
}

/// All mistakes of a set of jobs, in the order of the jobs. `broken` are ids that exist and of which no more is known.
pub fn check(jobs: &BTreeMap<JobId, LoadedJob>, broken: &BTreeSet<JobId>, around: &Around<'_>) -> Vec<Mistake> {
    let set = JobSet::new(jobs, broken, around);
    let entries: Vec<(&JobId, &LoadedJob)> = jobs.iter().collect();
    let mut found = parallel::map(&entries, |(id, loaded)| {
        let mut checking = set.checking(id, loaded);
        checking.references();
        checking.triggers();
        checking.samples();
        checking.findings
    });
    guess(&mut found, &set);
    let waits = entries.iter().zip(&mut found).map(|((id, _), findings)| (*id, std::mem::take(&mut findings.waits)));
    let waits: Vec<cycles::Waits<'_>> = waits.collect();
    let cycles = cycles::check(jobs, &waits);
    found.into_iter().flat_map(|findings| findings.mistakes).chain(cycles).collect()
}

/// Jobs that are not there but named in jobs that have mistakes of their own. What else a draft lacks may be one of
/// those, so that nothing more is said of it.
pub(super) fn check_drafts(
    drafts: &BTreeMap<JobId, LoadedJob>,
    jobs: &BTreeMap<JobId, LoadedJob>,
    broken: &BTreeSet<JobId>,
    around: &Around<'_>,
) -> Vec<Mistake> {
    let set = JobSet::new(jobs, broken, around);
    let mut found: Vec<Findings> = Vec::with_capacity(drafts.len());
    for (id, loaded) in drafts {
        let mut checking = set.checking(id, loaded);
        checking.unknown_jobs();
        found.push(checking.findings);
    }
    guess(&mut found, &set);
    found.into_iter().flat_map(|findings| findings.mistakes).collect()
}

/// All jobs and what they stand in.
struct JobSet<'a> {
    jobs: &'a BTreeMap<JobId, LoadedJob>,
    broken: &'a BTreeSet<JobId>,
    around: &'a Around<'a>,
    /// Zones and calendars for templates, without any name bound.
    world: Bindings,
}

impl<'a> JobSet<'a> {
    fn new(jobs: &'a BTreeMap<JobId, LoadedJob>, broken: &'a BTreeSet<JobId>, around: &'a Around<'a>) -> Self {
        let world = Bindings::new(Arc::clone(around.zones), Arc::new(around.calendars.clone()));
        Self { jobs, broken, around, world }
    }

    fn checking(&'a self, id: &'a JobId, loaded: &'a LoadedJob) -> Checking<'a> {
        Checking { set: self, id, loaded, findings: Findings::default() }
    }
}

/// One job being checked.
struct Checking<'a> {
    set: &'a JobSet<'a>,
    id: &'a JobId,
    loaded: &'a LoadedJob,
    findings: Findings,
}

/// What one job's check found.
#[derive(Default)]
struct Findings {
    mistakes: Vec<Mistake>,
    /// Which of the mistakes are about a job that is not there, and its id as written.
    unknown: Vec<(usize, String)>,
    /// Jobs that this one waits for, with the path of the condition.
    waits: Vec<(JobId, String)>,
    /// Templates bound so far.
    bound: usize,
}

impl<'a> Checking<'a> {
    fn job(&self) -> &'a Job {
        &self.loaded.job
    }

    fn report(&mut self, at: Range<usize>, message: impl Into<String>, hint: Option<String>) {
        let mistake = Mistake { hint, ..Mistake::new(&self.loaded.file, at, message) };
        // One template can name the same thing for several values of a param.
        if !self.is_full() && !self.findings.mistakes.contains(&mistake) {
            self.findings.mistakes.push(mistake);
        }
    }

    /// Reports a job that is not there.
    fn report_unknown(&mut self, at: Range<usize>, id: &JobId) {
        let before = self.findings.mistakes.len();
        self.report(at, format!("there is no job `{id}`"), None);
        if self.findings.mistakes.len() > before {
            self.findings.unknown.push((before, id.to_string()));
        }
    }

    /// Whether so much is wrong that nobody reads on.
    fn is_full(&self) -> bool {
        self.findings.mistakes.len() >= MISTAKES_MAX
    }

    /// Takes one template out of the budget; false when it is used up.
    fn may_bind(&mut self) -> bool {
        self.findings.bound += 1;
        self.findings.bound <= BINDS_MAX
    }
}

/// Says what may have been meant instead of jobs that are not there.
fn guess(found: &mut [Findings], set: &JobSet<'_>) {
    let mut left = GUESSES_MAX;
    for Findings { mistakes, unknown, .. } in found {
        for (index, id) in unknown.iter().take(left) {
            let ids = set.jobs.keys().chain(set.broken).map(JobId::as_str);
            let meant = did_you_mean(id, ids).map(|meant| format!("did you mean `{meant}`?"));
            mistakes[*index].hint = meant;
        }
        left = left.saturating_sub(unknown.len());
    }
}
