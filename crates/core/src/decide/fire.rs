//! Claims an occurrence that is due. The commit compares the cursor and advances it, so the first node wins and each
//! occurrence gets exactly one outcome.

use std::sync::Arc;

use cronhold_schedule::{Instant, Span};

use super::catch_up;
use super::draft::UnitDraft;
use super::occurrence;
use super::pause;
use super::placement;
use super::skips::{self, SkipPart};
use super::timetable::Timetable;
use crate::decision::{CommandReply, DecidedUnit, Effect};
use crate::ids::{JobId, NodeId};
use crate::job::LockPolicy;
use crate::policy::catch_up::{CatchUpPlan, GRACE, OccurrenceRange};
use crate::record::{Actor, Cursor, ForeignRun, JobRecord, JobState, RecordKey, Run, ScheduleId};
use crate::run::Reason;
use crate::view::{DecisionView, Halt};

/// An occurrence that this node cannot claim yet, because its zone or calendar is missing, is retried after this time.
const LOOK_AGAIN: Span = Span::from_secs(60);
/// An occurrence that a node with newer zone data should claim is checked again after this time. If that node is gone,
/// or does not claim it within the grace period, this node claims it as it is stored.
const NEWER_DATA_WAIT: Span = Span::from_secs(1);
/// How much earlier than the nominal time a foreign node may start a run, by the store's clock.
const FOREIGN_EARLY: Span = Span::from_millis(500);

/// Decides about an occurrence that is due.
pub(super) fn decide(
    view: &DecisionView<'_>,
    id: &JobId,
    schedule: &ScheduleId,
    nominal: Instant,
    at_start: bool,
) -> Result<DecidedUnit, Halt> {
    let (job, cursor, state) = (view.job(id), view.cursor(id, schedule), view.job_state(id));
    let is_paused = pause::is_paused(view, &state);
    let ends = pause::planned_ends(&state, &view.pauses());
    view.require_loaded()?;
    let plan = |next| only(Effect::Plan { job: id.clone(), schedule: schedule.clone(), next });
    let Some(cursor) = cursor else { return Ok(plan(None)) };
    let definition = job.as_ref().and_then(|job| job.schedule(schedule).filter(|own| job.job.enables(own)));
    let (Some(job), Some(definition)) = (&job, definition) else { return remove_orphan(view, &cursor, &state) };
    let now = view.stamp.at;
    let later = || plan(Some((nominal, now.plus(LOOK_AGAIN))));
    // The schedule may have been changed between a time and `@reboot` since the command was planned.
    let is_next = if at_start { cursor.at_start } else { cursor.next == Some(nominal) };
    if !is_next {
        return Ok(plan(cursor.next.zip(cursor.wake)));
    }
    // A missing zone or calendar may come back. Occurrences that were due in between are caught up then.
    let Ok(table) = Timetable::new(job, schedule, definition, view.world) else { return Ok(later()) };
    let table = table.for_cursor(&cursor);
    if !at_start && cursor.revision != job.revision {
        return refresh(view, &table, &cursor);
    }
    let claim = OccurrenceClaim::new(view, job, &table, &cursor, &state);
    if at_start {
        return claim.at_start(nominal, is_paused);
    }
    let due = cursor.wake.unwrap_or(nominal);
    if now < due {
        return Ok(plan(Some((nominal, due))));
    }
    if table.is_behind(&cursor, view.world) && now < due.plus(GRACE) && has_newer_data(view, job, &cursor) {
        return Ok(plan(Some((nominal, now.plus(NEWER_DATA_WAIT)))));
    }
    if is_paused {
        let rest = Effect::Rest { job: id.clone(), schedule: schedule.clone(), nominal };
        return Ok(DecidedUnit { effects: [rest].into_iter().chain(ends).collect(), ..DecidedUnit::default() });
    }
    let is_eligible = view.world.is_eligible(&job.job.nodes);
    if !is_eligible && now < due.plus(GRACE) {
        return Ok(plan(Some((nominal, due.plus(GRACE)))));
    }
    // A node whose keeper fails counts as absent. The occurrence rests until a keeper works, and catch-up applies then.
    if !is_eligible && view.world.waits_for_keeper(view.stamp.owner.node, &job.job.nodes) {
        return Ok(later());
    }
    // A live node checks at the end of the grace period. If it is much later, no node was alive and catch-up applies.
    let is_in_their_place = !is_eligible && now < due.plus(GRACE).plus(GRACE);
    if is_in_their_place && !claim.may_claim() {
        return claim.skip(nominal, Reason::NoEligibleNode);
    }
    let is_on_time = now <= due.plus(GRACE) || is_in_their_place;
    if is_on_time { claim.on_time(nominal, &Actor::Schedule) } else { claim.late(nominal) }
}

/// An occurrence that is being claimed.
struct OccurrenceClaim<'a> {
    draft: UnitDraft<'a>,
    job: &'a JobRecord,
    table: &'a Timetable<'a>,
    state: JobState,
    cursor: Cursor,
    /// The targets of its runs; `None` for a run that any node may start.
    places: Vec<Option<NodeId>>,
}

impl<'a> OccurrenceClaim<'a> {
    fn new(
        view: &'a DecisionView<'a>,
        job: &'a JobRecord,
        table: &'a Timetable<'a>,
        cursor: &Cursor,
        state: &JobState,
    ) -> Self {
        let places = placement::targets_of_occurrence(view, job);
        Self { draft: UnitDraft::new(view), job, table, state: state.clone(), cursor: cursor.clone(), places }
    }

    fn may_claim(&self) -> bool {
        placement::may_claim(self.draft.view, &self.job.job.nodes, &self.places)
    }

    /// Handles `@reboot`. Only a node that may run the job creates an occurrence.
    fn at_start(mut self, nominal: Instant, is_paused: bool) -> Result<DecidedUnit, Halt> {
        let me = self.draft.view.stamp.owner.node;
        self.places.retain(|place| place.is_none_or(|node| node == me));
        let is_known = occurrence::existing_run(&self.draft, self.table, nominal, &self.places).is_some();
        if is_known || !self.draft.view.world.is_eligible(&self.job.job.nodes) {
            return Ok(DecidedUnit::default());
        }
        if is_paused {
            return self.skip(nominal, Reason::Paused);
        }
        self.claim(nominal, &Actor::Schedule)?;
        self.finish()
    }

    fn on_time(mut self, nominal: Instant, actor: &Actor) -> Result<DecidedUnit, Halt> {
        self.claim(nominal, actor)?;
        self.finish()
    }

    fn skip(mut self, nominal: Instant, reason: Reason) -> Result<DecidedUnit, Halt> {
        if self.claimed_until(nominal).is_some() {
            // It had its outcome before the clock was set back. This creates no run.
            return self.on_time(nominal, &Actor::Schedule);
        }
        self.skip_occurrence(nominal, reason)?;
        self.mark_claimed(nominal, nominal);
        self.advance_cursor(nominal, None);
        self.finish()
    }

    /// No node was alive when the occurrence was due. Everything that is late is decided in this one commit.
    fn late(mut self, first: Instant) -> Result<DecidedUnit, Halt> {
        if let Some(until) = self.claimed_until(first) {
            return self.skip_claimed(first, until);
        }
        let view = self.draft.view;
        let CatchUpPlan { missed, backlog, live } = self.table.divide(first, self.draft.at());
        let is_eligible = self.may_claim();
        if self.table.counts_from_previous() && backlog.is_some() {
            // Such a schedule has no other occurrence, so this one runs late instead of entering a backlog.
            return if is_eligible { self.on_time(first, &Actor::CatchUp) } else { Ok(self.look_again(first)) };
        }
        let everything = view.pauses();
        let pauses = [&self.state.pauses, &*everything];
        let split = |reach| skips::split_by_pauses(self.table, reach, &Reason::Missed, &pauses, self.draft.at());
        let parts = missed.map(split).unwrap_or_default();
        let has_older = backlog.is_some() && view.backlog(&self.job.id, self.table.id).is_some();
        // An occurrence that is on time stays for an eligible node. Beside an older backlog it stays for the next
        // decision, because this one would take too many rounds.
        let live = live.filter(|_| is_eligible && !has_older);
        skips::record_all(&mut self.draft, &mut self.state, &mut self.cursor.streak, self.table, parts)?;
        let mut newest = missed.map_or(first, |missed| missed.to);
        if let Some(reach) = backlog {
            catch_up::add(&mut self.draft, &mut self.state, self.table, reach)?;
            self.mark_claimed(reach.from, reach.to);
            self.cursor.streak = None;
            newest = reach.to;
        }
        match live {
            Some(live) => self.claim(live, &Actor::Schedule)?,
            None => self.advance_cursor(newest, None),
        }
        self.finish()
    }

    /// Occurrences that were claimed before the clock was set back have come once more, and no node was alive. One span
    /// stands for all of them, also for those that still have their runs.
    fn skip_claimed(mut self, first: Instant, until: Instant) -> Result<DecidedUnit, Halt> {
        let to = self.table.last_come(first, until.min(self.draft.at()));
        let part = SkipPart { reach: OccurrenceRange { from: first, to }, reason: Reason::ClaimedBefore };
        skips::record_all(&mut self.draft, &mut self.state, &mut self.cursor.streak, self.table, vec![part])?;
        self.advance_cursor(to, None);
        self.finish()
    }

    fn look_again(&self, nominal: Instant) -> DecidedUnit {
        let next = Some((nominal, self.draft.at().plus(LOOK_AGAIN)));
        only(Effect::Plan { job: self.job.id.clone(), schedule: self.table.id.clone(), next })
    }

    /// Creates the runs of an occurrence, unless it has or had runs already because its cursor was set back.
    fn claim(&mut self, nominal: Instant, actor: &Actor) -> Result<(), Halt> {
        let is_claimed = self.claimed_until(nominal).is_some();
        self.mark_claimed(nominal, nominal);
        if is_claimed {
            // Usually the run is assumed to be absent. Here it probably exists.
            self.draft.view.prefetch([RecordKey::Run(self.table.run_id(nominal, None))]);
        }
        if let Some(id) = occurrence::existing_run(&self.draft, self.table, nominal, &self.places) {
            let run = self.draft.run(id);
            self.advance_cursor(nominal, run.as_deref());
            return Ok(());
        }
        if is_claimed {
            self.skip_occurrence(nominal, Reason::ClaimedBefore)?;
            self.advance_cursor(nominal, None);
            return Ok(());
        }
        if let Some(run) = self.foreign_claim(nominal, actor) {
            let reason = Reason::RanElsewhere { system: run.system.to_owned(), host: run.host.clone() };
            self.skip_occurrence(nominal, reason)?;
            self.advance_cursor(nominal, None);
            return Ok(());
        }
        let number = self.state.next_number;
        let Self { draft, state, table, places, .. } = self;
        let candidates = occurrence::create_candidates(draft, state, table, nominal, actor, places)?;
        if let Some(reason) = occurrence::common_skip_reason(&candidates) {
            // The candidates' numbers are given back: a skip takes a number only if it gets a record of its own.
            self.state.next_number = number;
            self.skip_occurrence(nominal, reason)?;
            self.advance_cursor(nominal, None);
            return Ok(());
        }
        let runs = occurrence::apply_admissions(draft, state, table, candidates)?;
        self.cursor.streak = None;
        // A schedule that counts from the previous run follows one of them: this node's run, if there is one.
        self.advance_cursor(nominal, runs.iter().find(|run| !run.state.is_finished()).or(runs.first()));
        runs.into_iter().for_each(|run| self.draft.put_run(run));
        Ok(())
    }

    /// The run of a foreign node that has covered the occurrence, if there is one. Foreign nodes do not use cursors, and
    /// the lock of a run that has ended is free again, so only that run shows it. Foreign nodes have no `@reboot`
    /// schedules and do not catch up. A job without a lock runs in each system independently.
    fn foreign_claim(&self, nominal: Instant, actor: &Actor) -> Option<Arc<ForeignRun>> {
        let may_have_run = self.draft.view.world.has_foreign && self.job.job.lock != LockPolicy::None;
        if !may_have_run || self.cursor.at_start || *actor != Actor::Schedule {
            return None;
        }
        let run = self.draft.view.foreign_run(&self.job.id);
        run.filter(|run| run.started >= nominal.minus(FOREIGN_EARLY))
    }

    fn skip_occurrence(&mut self, nominal: Instant, reason: Reason) -> Result<(), Halt> {
        let part = SkipPart { reach: OccurrenceRange { from: nominal, to: nominal }, reason };
        skips::record_all(&mut self.draft, &mut self.state, &mut self.cursor.streak, self.table, vec![part])
    }

    /// Whether the times of the schedule identify its occurrences. Otherwise its cursor may still have the times that
    /// were claimed before its definition changed.
    fn is_ordered_by_time(&self) -> bool {
        !self.cursor.at_start && !self.table.counts_from_previous()
    }

    /// Until when an occurrence and those after it were claimed before the clock was set back; `None` if it was not.
    fn claimed_until(&self, nominal: Instant) -> Option<Instant> {
        self.cursor.claimed.claimed_until(nominal).filter(|_| self.is_ordered_by_time())
    }

    /// Marks occurrences as claimed, before the cursor moves on. Those that follow the latest one extend its range.
    fn mark_claimed(&mut self, from: Instant, to: Instant) {
        if !self.is_ordered_by_time() {
            return;
        }
        let cursor = &mut self.cursor;
        let from = if cursor.next == Some(from) { cursor.last.unwrap_or(from) } else { from };
        cursor.claimed.insert(from, to);
    }

    /// Moves the cursor to the occurrence after this one.
    fn advance_cursor(&mut self, nominal: Instant, run: Option<&Run>) {
        let (cursor, world) = (&mut self.cursor, self.draft.view.world);
        if self.table.is_behind(cursor, world) || self.table.is_outdated(cursor, world) {
            // Up to here, the cursor followed zone data that gives other occurrences.
            cursor.since = cursor.since.max(nominal);
        }
        cursor.last = Some(cursor.last.map_or(nominal, |last| last.max(nominal)));
        cursor.next = if self.table.counts_from_previous() {
            cursor.generation = cursor.generation.wrapping_add(1);
            cursor.follows = run.and_then(|run| if run.state.is_finished() { run.retried_by } else { Some(run.id) });
            if cursor.follows.is_some() { None } else { self.table.after_run(self.draft.at()) }
        } else {
            self.table.next(nominal)
        };
        cursor.wake = cursor.next.map(|next| self.table.wake(next));
        cursor.zones = self.table.zones(world);
    }

    fn finish(self) -> Result<DecidedUnit, Halt> {
        let Self { mut draft, job, state, cursor, .. } = self;
        if state != *draft.view.job_state(&job.id) {
            draft.put_state(state);
        }
        draft.put_cursor(cursor);
        draft.finish(CommandReply::Done)
    }
}

/// Whether a live node that may run the job has the zone data that a cursor was computed from, or newer data.
fn has_newer_data(view: &DecisionView<'_>, job: &JobRecord, cursor: &Cursor) -> bool {
    view.world.has_zone_data(view.stamp.owner.node, &job.job.nodes, &cursor.zones)
}

/// Computes a cursor again that belongs to another revision of its job. A store that lost its last writes can have
/// both: one was restored and the other was not. The commit compares both, so they are not two states of a change.
fn refresh(view: &DecisionView<'_>, table: &Timetable<'_>, cursor: &Cursor) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    draft.put_cursor(table.refresh(cursor.clone(), draft.at(), view.world));
    draft.finish(CommandReply::Done)
}

/// Deletes a cursor whose job or schedule is gone.
fn remove_orphan(view: &DecisionView<'_>, cursor: &Cursor, state: &JobState) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    let floor = state.floor.max(cursor.last);
    if floor != state.floor {
        draft.put_state(JobState { floor, ..state.clone() });
    }
    draft.delete(RecordKey::Cursor(cursor.job.clone(), cursor.schedule.clone()));
    draft.finish(CommandReply::Done)
}

/// A decision that writes nothing and has one effect.
fn only(effect: Effect) -> DecidedUnit {
    DecidedUnit { effects: vec![effect], ..DecidedUnit::default() }
}

#[cfg(test)]
mod outcomes;
#[cfg(test)]
mod tests;
