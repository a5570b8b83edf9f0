//! Facts about a given time: the occurrences at or next to it, and their outcomes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_schedule::{Instant, Span};

use super::fact::{Fact, OccurrenceOutcome, Prospect, TimePosition};
use super::known_records::KnownRecords;
use super::ledger::{Ledger, LedgerEntry};
use super::now::{count, cursor};
use crate::ids::JobId;
use crate::job::JobSchedule;
use crate::record::{JobRecord, Run, ScheduleId};
use crate::world::DecisionContext;

/// A request to explain what happened at the time `at`.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) job: &'a JobId,
    pub(super) known: &'a KnownRecords,
    pub(super) world: &'a DecisionContext,
    pub(super) now: Instant,
    pub(super) at: Instant,
}

/// The outcomes of occurrences and of runs that no schedule created, by nominal time and schedule.
type Happenings = BTreeMap<(Instant, Option<ScheduleId>), OccurrenceOutcome>;

/// The facts about the requested time.
pub(super) fn facts(question: Question<'_>) -> Vec<Fact> {
    let Question { known, world, at, .. } = question;
    let mut happenings = Happenings::new();
    let mut facts = Vec::new();
    match &known.job {
        None => facts.push(Fact::NoJob),
        Some(job) => {
            for (id, schedule) in job.schedules() {
                if let Some(error) = job.compile(schedule, world).err().filter(|_| job.job.enables(schedule)) {
                    facts.push(Fact::Schedule(id.clone(), Prospect::CannotAsk(error)));
                }
                happenings.extend(question.occurrences(job, id, schedule));
            }
        }
    }
    question.add_runs(&mut happenings);

    let times = relevant_times(&happenings, at);
    // If a schedule does not compile, it is unknown whether it had an occurrence.
    if !times.contains(&at) && facts.is_empty() {
        facts.push(Fact::NoOccurrence(at));
    }
    if known.job.as_ref().is_some_and(|job| job.job.schedules.is_empty()) {
        facts.push(Fact::NoSchedule);
    }
    let happenings = happenings.into_iter().filter(|((nominal, _), _)| times.contains(nominal));
    facts.extend(happenings.map(|((nominal, schedule), outcome)| {
        let place = match nominal.cmp(&at) {
            Ordering::Less => TimePosition::Before,
            Ordering::Equal => TimePosition::Exact,
            Ordering::Greater => TimePosition::After,
        };
        Fact::Occurrence { schedule, nominal, place, outcome }
    }));
    facts
}

/// The times to report: the requested one if anything happened then, or else the nearest occurrences and the requested
/// runs in between.
fn relevant_times(happenings: &Happenings, at: Instant) -> BTreeSet<Instant> {
    let instants: BTreeSet<Instant> = happenings.keys().map(|(nominal, _)| *nominal).collect();
    if instants.contains(&at) {
        return BTreeSet::from([at]);
    }
    let occurrences = || happenings.keys().filter(|(_, schedule)| schedule.is_some()).map(|(nominal, _)| *nominal);
    let before = occurrences().filter(|nominal| *nominal < at).max();
    let after = occurrences().filter(|nominal| *nominal > at).min();
    let is_near = |nominal: &Instant| Some(*nominal) >= before && after.is_none_or(|after| *nominal <= after);
    instants.into_iter().filter(is_near).collect()
}

impl Question<'_> {
    /// The occurrences of a schedule at the requested time, right before it and right after it.
    fn occurrences(&self, job: &JobRecord, id: &ScheduleId, schedule: &JobSchedule) -> Happenings {
        let Ok(compiled) = job.compile(schedule, self.world) else { return Happenings::new() };
        let just_before = self.at.minus(Span::from_micros(1));
        let instants = [compiled.prev(self.at), compiled.next(just_before), compiled.next(self.at)];
        let ledger = Ledger::of(job, id, self.known);
        let mut happenings = Happenings::new();
        for nominal in instants.into_iter().flatten() {
            let outcome = match self.recorded(job, &ledger, nominal) {
                Some(outcome) => outcome,
                // An occurrence of a disabled schedule is reported only if it is exactly at the requested time.
                None if !job.job.enables(schedule) && nominal != self.at => continue,
                None if !job.job.enables(schedule) => OccurrenceOutcome::Disabled,
                None => self.unrecorded(job, id, nominal),
            };
            happenings.insert((nominal, Some(id.clone())), outcome);
        }
        happenings
    }

    /// Adds runs at the requested time, right before it and right after it, that no current schedule yields: they were
    /// requested, they count from the previous run or the start of a node, or their schedule was changed or removed.
    fn add_runs(&self, happenings: &mut Happenings) {
        let own = || self.known.runs.iter().filter(|run| run.job == *self.job);
        let instants = || own().map(|run| run.nominal);
        let before = instants().filter(|nominal| *nominal < self.at).max();
        let after = instants().filter(|nominal| *nominal > self.at).min();
        let near = |run: &&Arc<Run>| [before, Some(self.at), after].contains(&Some(run.nominal));
        let mut attempts: BTreeMap<_, Vec<Arc<Run>>> = BTreeMap::new();
        for run in own().filter(near) {
            attempts.entry((run.nominal, run.schedule.clone())).or_default().push(Arc::clone(run));
        }
        for (key, mut runs) in attempts {
            runs.sort_by_key(|run| (run.target, run.number));
            happenings.entry(key).or_insert(OccurrenceOutcome::Runs(runs));
        }
        let is_gone = |schedule: &ScheduleId| {
            let schedules = self.known.job.iter().flat_map(|job| job.schedules());
            schedules.into_iter().all(|(id, _)| schedule != id)
        };
        for span in self.known.spans.iter().filter(|span| span.job == *self.job && is_gone(&span.schedule)) {
            if span.covers(self.at) {
                let outcome = OccurrenceOutcome::Span(Arc::clone(span));
                happenings.insert((self.at, Some(span.schedule.clone())), outcome);
            }
        }
    }

    /// The recorded outcome of an occurrence; `None` if there is no record.
    fn recorded(&self, job: &JobRecord, ledger: &Ledger<'_>, nominal: Instant) -> Option<OccurrenceOutcome> {
        Some(match ledger.entry(nominal)? {
            LedgerEntry::Runs(runs) => OccurrenceOutcome::Runs(runs.into_iter().map(Arc::clone).collect()),
            LedgerEntry::Span(span) => OccurrenceOutcome::Span(Arc::clone(span)),
            LedgerEntry::Backlog(backlog) => {
                let ahead = count(job, backlog, nominal, self.world).map_or(0, |count| count - 1);
                OccurrenceOutcome::Backlog { backlog: Arc::clone(backlog), ahead }
            }
        })
    }

    /// Why there is no record of an occurrence.
    fn unrecorded(&self, job: &JobRecord, id: &ScheduleId, nominal: Instant) -> OccurrenceOutcome {
        let Some(cursor) = cursor(job, id, self.known) else { return OccurrenceOutcome::NoCursor };
        let is_ahead = cursor.next.is_some_and(|next| next <= nominal);
        match self.known.kept_from() {
            _ if nominal > self.now => OccurrenceOutcome::Coming { paused: self.known.is_paused() },
            _ if is_ahead && self.known.is_paused() => OccurrenceOutcome::Resting,
            // It may be older than `since`: an occurrence that was due when the schedule changed stays next.
            _ if is_ahead => OccurrenceOutcome::Due,
            _ if nominal <= cursor.since => OccurrenceOutcome::BeforeSchedule(cursor.since),
            Some(kept_from) if nominal < kept_from => OccurrenceOutcome::NotKept(kept_from.min(self.now)),
            _ => OccurrenceOutcome::Hole,
        }
    }
}
