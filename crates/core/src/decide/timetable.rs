//! A compiled schedule of a job: its occurrences, when each is due, and the id and args of its run. All decisions about
//! occurrences use it, so that they agree on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_schedule::{Instant, Schedule, Span, Timing};

use super::draft::UnitDraft;
use super::finish_run;
use super::run_lifecycle::{self, NewRun};
use crate::args::{ArgErrors, Args};
use crate::decision::Rejection;
use crate::ids::{NodeId, RunId};
use crate::job;
use crate::policy::catch_up::{self, CatchUpPlan, CountedRange, OccurrenceRange, Occurrences};
use crate::record::{Actor, ClaimedRanges, Cursor, JobRecord, JobState, RecordKey, Run, ScheduleId};
use crate::run::{Cause, Reason};
use crate::view::{DecisionView, Halt};
use crate::world::DecisionContext;

/// A cursor that is further ahead than this was moved by a wrong clock.
const AHEAD_MAX: Span = Span::from_secs(60);

/// The attempt that ids of runs are derived for. The ids of retries follow it.
const FIRST_ATTEMPT: u32 = 1;

/// The attempt that ids of spans are derived for, so that a span never has the id of a run.
const SPAN_ATTEMPT: u32 = 0;

/// The resolution of instants.
const MOMENT: Span = Span::from_micros(1);

/// A compiled schedule of a job.
pub(super) struct Timetable<'a> {
    pub(super) job: &'a JobRecord,
    pub(super) id: &'a ScheduleId,
    pub(super) schedule: &'a job::JobSchedule,
    compiled: Schedule,
    /// The generation of the next occurrence, if the schedule counts from its previous run.
    generation: Option<u32>,
}

impl<'a> Timetable<'a> {
    /// Compiles a schedule. Fails if it names a zone or a calendar that does not exist.
    pub(super) fn new(
        job: &'a JobRecord,
        id: &'a ScheduleId,
        schedule: &'a job::JobSchedule,
        world: &DecisionContext,
    ) -> Result<Self, Rejection> {
        let compiled = job.compile(schedule, world).map_err(|wrong| Rejection::Schedule {
            job: job.id.clone(),
            key: wrong.key,
            message: wrong.error.to_string(),
        })?;
        Ok(Self { job, id, schedule, compiled, generation: None })
    }

    /// The timetable for the next occurrence of a cursor.
    pub(super) fn for_cursor(self, cursor: &Cursor) -> Self {
        let generation = self.counts_from_previous().then_some(cursor.generation);
        Self { generation, ..self }
    }

    /// Whether it counts from the end of its previous run.
    pub(super) fn counts_from_previous(&self) -> bool {
        self.compiled.counts_from_previous()
    }

    /// Whether each start of a node is an occurrence.
    pub(super) fn is_at_start(&self) -> bool {
        matches!(self.schedule.spec.timing, Timing::Reboot)
    }

    /// The first occurrence strictly after an instant.
    pub(super) fn next(&self, after: Instant) -> Option<Instant> {
        self.compiled.next(after)
    }

    /// The next time of a schedule that counts from the previous run, if that run ended at `end`.
    pub(super) fn after_run(&self, end: Instant) -> Option<Instant> {
        self.compiled.after_run(end)
    }

    /// When an occurrence is due: its nominal time plus its jitter.
    pub(super) fn wake(&self, nominal: Instant) -> Instant {
        nominal.plus(self.compiled.jitter(nominal))
    }

    /// The id of the run of an occurrence, on any node or on a target. All nodes derive the same id.
    pub(super) fn run_id(&self, nominal: Instant, target: Option<NodeId>) -> RunId {
        self.derived_id(nominal, FIRST_ATTEMPT, target)
    }

    /// The id of a span of skips that begins with an occurrence.
    pub(super) fn span_id(&self, from: Instant) -> RunId {
        self.derived_id(from, SPAN_ATTEMPT, None)
    }

    fn derived_id(&self, nominal: Instant, attempt: u32, target: Option<NodeId>) -> RunId {
        let (uid, schedule) = (self.job.uid, self.id.as_str());
        match (self.generation, target) {
            (Some(generation), node) => RunId::of_generation(uid, schedule, generation, nominal, attempt, node),
            (None, Some(node)) => RunId::on_node(uid, schedule, nominal, attempt, node),
            (None, None) => RunId::derived(uid, schedule, nominal, attempt),
        }
    }

    /// Creates the run of an occurrence. If its args are invalid, the run ends at once in error.
    pub(super) fn create_run(
        &self,
        draft: &mut UnitDraft<'_>,
        state: &mut JobState,
        nominal: Instant,
        actor: Actor,
        target: Option<NodeId>,
    ) -> Result<Run, Halt> {
        let (args, unbound) = match self.args(nominal) {
            Ok(args) => (args, None),
            Err(errors) => (Args::default(), Some(Reason::Unbound(errors.to_string()))),
        };
        let (id, schedule) = (self.run_id(nominal, target), Some(self.id));
        let new_run = NewRun { id, job: self.job, schedule, nominal, args, target, actor };
        let run = run_lifecycle::create_run(draft, state, new_run)?;
        match unbound {
            Some(reason) if !run.state.is_finished() => {
                finish_run::finish(draft, run, state, Cause::Broke, Some(reason))
            }
            _ => Ok(run),
        }
    }

    /// Identifies a run that is recorded without being started. Invalid args are ignored, because it does not use them.
    pub(super) fn new_run(&self, id: RunId, nominal: Instant, actor: Actor) -> NewRun<'_> {
        let args = self.args(nominal).unwrap_or_default();
        NewRun { id, job: self.job, schedule: Some(self.id), nominal, args, target: None, actor }
    }

    /// The args of the run of an occurrence.
    pub(super) fn args(&self, nominal: Instant) -> Result<Args, ArgErrors> {
        let automatic = match self.job.job.params.is_empty() {
            true => BTreeMap::new(),
            false => {
                let given = self.compiled.automatic_args(nominal).into_iter();
                given.map(|(name, value)| (name.to_owned(), value)).collect()
            }
        };
        Args::bind(&self.job.job.params, &self.schedule.args, &automatic)
    }

    /// The record with the outcomes of the run of an occurrence, beside the state of the job.
    pub(super) fn identity(&self, state: &JobState, nominal: Instant) -> Option<RecordKey> {
        finish_run::identity_key(state, &self.args(nominal).unwrap_or_default())
    }

    /// The occurrences from one to another, counted. Counting takes time, so it is left out while records are missing:
    /// the result of that pass is discarded, and only whether there is more than one matters for what it reads.
    pub(super) fn counted(&self, view: &DecisionView<'_>, reach: OccurrenceRange) -> CountedRange {
        let OccurrenceRange { from, to } = reach;
        match view.is_complete() {
            true => catch_up::counted(reach, |at| self.compiled.next(at)),
            false => CountedRange { from, to, count: if from == to { 1 } else { 2 } },
        }
    }

    /// The first occurrence that is due at an instant or after it.
    pub(super) fn first_due(&self, since: Instant) -> Option<Instant> {
        self.woken_after(since.minus(MOMENT))
    }

    /// The last occurrence strictly before `before`, if it is not before `not_before`.
    pub(super) fn last_before(&self, before: Instant, not_before: Instant) -> Option<Instant> {
        self.compiled.prev(before).filter(|at| *at >= not_before)
    }

    /// The last occurrence whose nominal time has come; `first` is one of them.
    pub(super) fn last_come(&self, first: Instant, now: Instant) -> Instant {
        self.compiled.prev(now.plus(MOMENT)).map_or(first, |at| at.max(first))
    }

    /// Divides the occurrences that are due by the catch-up policy. Because of jitter, an occurrence is due later than
    /// its nominal time; the policy is applied to due times, and the result is given in nominal times.
    pub(super) fn divide(&self, first: Instant, now: Instant) -> CatchUpPlan {
        let first_wake = self.wake(first);
        // If the schedule was changed, `first` may not be one of its occurrences any more; it counts nevertheless. The
        // new schedule may have an occurrence before `first` that is due after it; that one does not count.
        let after = |at| match at < first_wake {
            true => Some(first_wake),
            false => {
                let found = self.woken_after(at)?;
                let nominal = if found > first { Some(found) } else { self.next(first) };
                nominal.map(|nominal| self.wake(nominal))
            }
        };
        let before = |at| {
            let found = self.woken_before(at).filter(|nominal| *nominal > first).map(|nominal| self.wake(nominal));
            found.or(Some(first_wake).filter(|wake| *wake < at))
        };
        let occurrences = Occurrences { after: &after, before: &before };
        let CatchUpPlan { missed, backlog, live } = catch_up::plan(self.job.job.catch_up, first_wake, now, occurrences);
        // Jitter is shorter than the time to the next occurrence, so the last occurrence before a due time is the one
        // that is due then.
        let nominal = |wake: Instant| match wake == first_wake {
            true => first,
            false => self.compiled.prev(wake.plus(MOMENT)).unwrap_or(wake),
        };
        let told = |reach: OccurrenceRange| OccurrenceRange { from: nominal(reach.from), to: nominal(reach.to) };
        CatchUpPlan { missed: missed.map(told), backlog: backlog.map(told), live: live.map(nominal) }
    }

    /// The cursor of a schedule that begins at `since`.
    pub(super) fn begin(&self, since: Instant, world: &DecisionContext) -> Cursor {
        let next = if self.counts_from_previous() { self.after_run(since) } else { self.next(since) };
        Cursor {
            job: self.job.id.clone(),
            schedule: self.id.clone(),
            since,
            last: None,
            claimed: ClaimedRanges::default(),
            next,
            wake: next.map(|next| self.wake(next)),
            revision: self.job.revision,
            zones: self.zones(world),
            generation: 0,
            follows: None,
            at_start: self.is_at_start(),
            streak: None,
        }
    }

    /// Computes a cursor again, because the schedule, the zone data or a calendar has changed since it was written, or
    /// because the clock was wrong then. An occurrence that is due stays the next one, so that it gets its outcome.
    pub(super) fn refresh(&self, mut cursor: Cursor, now: Instant, world: &DecisionContext) -> Cursor {
        let was = cursor.next;
        let is_ahead = |at: &Instant| *at > now.plus(AHEAD_MAX);
        if cursor.last.as_ref().is_some_and(is_ahead) {
            cursor.last = Some(now);
        }
        // Occurrences that were claimed before the clock was set back are not claimed again.
        cursor.since = cursor.since.min(Self::counts_since(&cursor, now));
        cursor.at_start = self.is_at_start();
        cursor.next = if self.counts_from_previous() {
            self.refreshed_after(&cursor, now)
        } else {
            cursor.follows = None;
            let due = cursor.next.filter(|next| *next <= now);
            due.or_else(|| self.next(Self::counts_since(&cursor, now)))
        };
        cursor.wake = cursor.next.map(|next| self.wake(next));
        if cursor.next != was {
            cursor.since = Self::counts_since(&cursor, now);
        }
        cursor.revision = self.job.revision;
        // A cursor that other zone data gives as well is not written only for the name of the release.
        if cursor.next != was || cursor.zones.is_empty() || !self.compiled.depends_on_zone_data() {
            cursor.zones = self.zones(world);
        }
        cursor
    }

    /// The release of the zone data that its occurrences are computed from; empty if they do not depend on it.
    pub(super) fn zones(&self, world: &DecisionContext) -> Arc<str> {
        if self.compiled.depends_on_zone_data() { world.zones_version.clone() } else { Arc::from("") }
    }

    /// Whether a cursor was computed from older zone data, and this node's data gives another next occurrence.
    pub(super) fn is_outdated(&self, cursor: &Cursor, world: &DecisionContext) -> bool {
        !cursor.zones.is_empty() && *cursor.zones < *world.zones_version && !self.gives_next(cursor)
    }

    /// Whether a cursor was computed from newer zone data, and this node's data gives another next occurrence.
    pub(super) fn is_behind(&self, cursor: &Cursor, world: &DecisionContext) -> bool {
        *cursor.zones > *world.zones_version && !self.gives_next(cursor)
    }

    /// Whether this node's zone data gives the same next occurrence. Only the time since the latest occurrence
    /// counts: what the data of two releases say about other times does not matter.
    fn gives_next(&self, cursor: &Cursor) -> bool {
        let is_by_zone = self.compiled.depends_on_zone_data() && !self.counts_from_previous();
        let after = cursor.last.map_or(cursor.since, |last| last.max(cursor.since));
        !is_by_zone || self.next(after) == cursor.next
    }

    /// The time from which a changed cursor is responsible for all occurrences. Another node's clock may be ahead, and
    /// what it has claimed is not claimed again.
    pub(super) fn counts_since(cursor: &Cursor, now: Instant) -> Instant {
        cursor.last.map_or(now, |last| last.max(now))
    }

    /// The next time of a schedule that counts from the previous run. It stays, unless it can be sooner now or its day
    /// is no longer in the calendar.
    fn refreshed_after(&self, cursor: &Cursor, now: Instant) -> Option<Instant> {
        if cursor.follows.is_some() {
            return None;
        }
        let soonest = self.after_run(now);
        match cursor.next {
            Some(next) if next <= now => Some(next),
            Some(next) => {
                // Counting back from the stored time gives the time from which it was computed.
                let allowed =
                    self.after_run(next.minus(finish_run::interval(self.schedule))).filter(|allowed| *allowed >= next);
                [allowed, soonest].into_iter().flatten().min()
            }
            None => soonest,
        }
    }

    /// The first occurrence that is due strictly after an instant.
    fn woken_after(&self, at: Instant) -> Option<Instant> {
        let current = self.compiled.prev(at.plus(MOMENT)).filter(|nominal| self.wake(*nominal) > at);
        current.or_else(|| self.compiled.next(at))
    }

    /// The last occurrence that is due strictly before an instant.
    fn woken_before(&self, at: Instant) -> Option<Instant> {
        let nominal = self.compiled.prev(at)?;
        if self.wake(nominal) < at { Some(nominal) } else { self.compiled.prev(nominal) }
    }
}
