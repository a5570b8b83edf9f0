//! One schedule of a job that can be asked: which occurrences it has, when each is due, and what its run is called and
//! gets. Every decision about occurrences asks here, so that all of them see the same ones.

use std::collections::BTreeMap;

use cronhold_schedule::{Instant, Schedule, Span, Timing};

use super::draft::UnitDraft;
use super::finish_run;
use super::occurrence;
use super::run_lifecycle::{self, NewRun};
use crate::args::{ArgErrors, Args};
use crate::decision::Rejection;
use crate::ids::{NodeId, RunId};
use crate::job;
use crate::policy::catch_up::{self, Occurrences, Plan, Reach, Stretch};
use crate::record::{Actor, Cursor, JobRecord, JobState, Key, Run, ScheduleId};
use crate::run::{Cause, Reason};
use crate::view::{Halt, View};
use crate::world::World;

/// A cursor that has come further than this into the future was moved by a clock that was wrong.
const AHEAD_MAX: Span = Span::from_secs(60);

/// The shortest time there is: between an instant and the one just before it.
const MOMENT: Span = Span::from_micros(1);

/// A schedule of a job that can be asked.
pub(super) struct Timetable<'a> {
    pub(super) job: &'a JobRecord,
    pub(super) id: &'a ScheduleId,
    pub(super) schedule: &'a job::Schedule,
    compiled: Schedule,
}

impl<'a> Timetable<'a> {
    /// Brings a schedule together with the world. It may name a zone or a calendar that is not there.
    pub(super) fn new(
        job: &'a JobRecord,
        id: &'a ScheduleId,
        schedule: &'a job::Schedule,
        world: &World,
    ) -> Result<Self, Rejection> {
        let compiled = job.compile(schedule, world).map_err(|wrong| Rejection::Schedule {
            job: job.id.clone(),
            key: wrong.key,
            message: wrong.error.to_string(),
        })?;
        Ok(Self { job, id, schedule, compiled })
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

    /// When the run after one that ended then is due, for a schedule that counts from the previous run.
    pub(super) fn after_run(&self, end: Instant) -> Option<Instant> {
        self.compiled.after_run(end)
    }

    /// When an occurrence is due: its time and its jitter.
    pub(super) fn wake(&self, nominal: Instant) -> Instant {
        nominal.plus(self.compiled.jitter(nominal))
    }

    /// The id of the run of an occurrence, or of the one that it has on a node. Every node gives it the same.
    pub(super) fn run_id(&self, nominal: Instant, target: Option<NodeId>) -> RunId {
        occurrence::run_id(self.job.uid, self.id, nominal, 1, target)
    }

    /// Makes the run of an occurrence. Args that do not fit end it at once in error.
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

    /// What a run of an occurrence begins as that does not start. Args that do not fit matter to one that starts.
    pub(super) fn new_run(&self, id: RunId, nominal: Instant, actor: Actor) -> NewRun<'_> {
        let args = self.args(nominal).unwrap_or_default();
        NewRun { id, job: self.job, schedule: Some(self.id), nominal, args, target: None, actor }
    }

    /// The args of the run of an occurrence.
    fn args(&self, nominal: Instant) -> Result<Args, ArgErrors> {
        let automatic = match self.job.job.params.is_empty() {
            true => BTreeMap::new(),
            false => {
                let given = self.compiled.automatic_args(nominal).into_iter();
                given.map(|(name, value)| (name.to_owned(), value)).collect()
            }
        };
        Args::bind(&self.job.job.params, &self.schedule.args, &automatic)
    }

    /// The key of the identity that the run of an occurrence has.
    pub(super) fn identity(&self, nominal: Instant) -> Key {
        Key::Identity(self.job.id.clone(), self.args(nominal).unwrap_or_default())
    }

    /// The occurrences from one to another, counted. Counting takes time, so it is left out while records are missing:
    /// the result of that pass is discarded, and only whether there is more than one matters for what it reads.
    pub(super) fn counted(&self, view: &View<'_>, reach: Reach) -> Stretch {
        let Reach { from, to } = reach;
        match view.is_complete() {
            true => catch_up::counted(reach, |at| self.compiled.next(at)),
            false => Stretch { from, to, count: if from == to { 1 } else { 2 } },
        }
    }

    /// The first occurrence that is due at an instant or after it.
    pub(super) fn first_due(&self, since: Instant) -> Option<Instant> {
        self.woken_after(since.minus(MOMENT))
    }

    /// The last occurrence strictly before an instant, unless it lies before another.
    pub(super) fn last_before(&self, before: Instant, not_before: Instant) -> Option<Instant> {
        self.compiled.prev(before).filter(|at| *at >= not_before)
    }

    /// The last occurrence whose time has come, from one whose time has.
    pub(super) fn last_come(&self, first: Instant, now: Instant) -> Instant {
        self.compiled.prev(now.plus(MOMENT)).map_or(first, |at| at.max(first))
    }

    /// Divides what is due by the catch-up policy. Jitter makes occurrences due later than their time says, so the
    /// division is made among the times at which they are due, and then told in their own.
    pub(super) fn divide(&self, first: Instant, now: Instant) -> Plan {
        let first_wake = self.wake(first);
        // The first may not be an occurrence any more, when the schedule was changed since; it has its place anyway. The
        // schedule as it is now may have one before it that is due after it: that is none of those that are asked for.
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
        let Plan { missed, backlog, live } = catch_up::plan(self.job.job.catch_up, first_wake, now, occurrences);
        // Jitter stays below the distance to the next occurrence, so the one before a wake is the one that wakes then.
        let nominal = |wake: Instant| match wake == first_wake {
            true => first,
            false => self.compiled.prev(wake.plus(MOMENT)).unwrap_or(wake),
        };
        let told = |reach: Reach| Reach { from: nominal(reach.from), to: nominal(reach.to) };
        Plan { missed: missed.map(told), backlog: backlog.map(told), live: live.map(nominal) }
    }

    /// A cursor for a schedule that begins to count, after what was claimed before.
    pub(super) fn begin(&self, since: Instant, world: &World) -> Cursor {
        let next = if self.counts_from_previous() { self.after_run(since) } else { self.next(since) };
        Cursor {
            job: self.job.id.clone(),
            schedule: self.id.clone(),
            since,
            last: None,
            next,
            wake: next.map(|next| self.wake(next)),
            revision: self.job.revision,
            zones: world.zones_version.clone(),
            generation: 0,
            follows: None,
            at_start: self.is_at_start(),
            streak: None,
        }
    }

    /// A cursor as this schedule has it now: the schedule, the zone data or a calendar may be another one than when
    /// the cursor was written, or the clock may have been wrong then. An occurrence that is due keeps its place, so
    /// that it gets its outcome.
    pub(super) fn refresh(&self, mut cursor: Cursor, now: Instant, world: &World) -> Cursor {
        let was = cursor.next;
        let is_ahead = |at: &Instant| *at > now.plus(AHEAD_MAX);
        if cursor.last.as_ref().is_some_and(is_ahead) {
            cursor.last = Some(now);
        }
        // What was claimed before the clock was set back is not claimed again, so nothing before it is answered for.
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
        cursor.zones = world.zones_version.clone();
        cursor
    }

    /// From when on a cursor that yields other occurrences now answers for all of them. Another node's clock may be
    /// ahead, and what it has claimed is not claimed again.
    pub(super) fn counts_since(cursor: &Cursor, now: Instant) -> Instant {
        cursor.last.map_or(now, |last| last.max(now))
    }

    /// The next of a schedule that counts from the previous run: as it is, unless it could be sooner now or its day
    /// is not in the calendar any more.
    fn refreshed_after(&self, cursor: &Cursor, now: Instant) -> Option<Instant> {
        if cursor.follows.is_some() {
            return None;
        }
        let soonest = self.after_run(now);
        match cursor.next {
            Some(next) if next <= now => Some(next),
            Some(next) => {
                // Its end says when it was to be counted from: one moment before it nothing else lies in between.
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
