//! Facts about the present: what keeps a job from running, what it is doing, and what happens next.

use std::sync::Arc;

use cronhold_schedule::{Instant, Timing};

use super::fact::{Fact, Hindrance, Prospect, Unable};
use super::known_records::KnownRecords;
use crate::ids::{JobId, NodeId, RunId};
use crate::job::{JobSchedule, NodeSelector, OverlapPolicy};
use crate::policy::catch_up::COUNT_MAX;
use crate::policy::overlap::can_overlap;
use crate::record::{Backlog, Cursor, JobRecord, LockState, NodeRecord, Run, ScheduleId, TriggerSet};
use crate::run::State;
use crate::world::DecisionContext;

/// The most unfinished runs that are listed; further ones are only counted.
const RUNS_SHOWN: usize = 10;

/// The facts about the present.
pub(super) fn facts(id: &JobId, known: &KnownRecords, world: &DecisionContext, now: Instant) -> Vec<Fact> {
    let Some(job) = &known.job else {
        let with_program = known.runs.iter().filter(|run| run.job == *id && run.state.has_program());
        return [Fact::NoJob]
            .into_iter()
            .chain(with_program.map(|run| Fact::OnItsWay(Arc::clone(run), waits_for_keeper(run, known))))
            .collect();
    };
    let mut facts: Vec<Fact> = known.pauses.current.clone().map(Fact::AllPaused).into_iter().collect();
    facts.extend(known.own_pauses().and_then(|pauses| pauses.current.clone()).map(Fact::JobPaused));
    facts.extend(nodes(job, known, now));
    facts.extend(on_their_way(job, known, now));
    let own = known.backlogs.iter().filter(|backlog| backlog.job == job.id);
    facts.extend(own.map(|backlog| {
        let last = backlog.rest().last().map_or(backlog.to, |rest| rest.to);
        let left = count(job, backlog, last, world);
        Fact::CatchingUp { backlog: Arc::clone(backlog), left }
    }));
    let has_decided = |set: &&Arc<TriggerSet>| set.job == job.id && !set.decisions.is_empty();
    facts.extend(known.triggers.iter().filter(has_decided).map(|set| Fact::Triggers(Arc::clone(set))));
    facts.extend(last_run(job, known).map(|run| Fact::LastRun(Arc::clone(run))));
    if job.job.schedules.is_empty() {
        facts.push(Fact::NoSchedule);
    }
    let schedules = job.schedules();
    facts.extend(
        schedules.map(|(id, schedule)| Fact::Schedule(id.clone(), prospect(job, id, schedule, known, world, now))),
    );
    facts
}

/// The cursor of a schedule.
pub(super) fn cursor<'a>(job: &JobRecord, schedule: &ScheduleId, known: &'a KnownRecords) -> Option<&'a Arc<Cursor>> {
    known.cursors.iter().find(|cursor| cursor.job == job.id && cursor.schedule == *schedule)
}

/// How many occurrences of a backlog are left up to `to`, included; `COUNT_MAX` means that many or more. `None` if the
/// schedule does not compile.
pub(super) fn count(job: &JobRecord, backlog: &Backlog, to: Instant, world: &DecisionContext) -> Option<u32> {
    let compiled = job.compile(job.schedule(&backlog.schedule)?, world).ok()?;
    let begun = backlog.rest().filter(|rest| rest.from <= to);
    let left = begun.flat_map(|rest| [rest.from].into_iter().chain(compiled.between(rest.from, rest.to.min(to))));
    u32::try_from(left.take(COUNT_MAX as usize).count()).ok()
}

/// Why no node can start any run of the job; `None` if one can, or if no nodes are known.
fn nodes(job: &JobRecord, known: &KnownRecords, now: Instant) -> Option<Fact> {
    let last = known.nodes.iter().max_by_key(|node| node.beat)?;
    if now > last.gone {
        return Some(Fact::NoNode(Arc::clone(last)));
    }
    let labels = match &job.job.nodes {
        NodeSelector::Any => Default::default(),
        NodeSelector::Labels(labels) | NodeSelector::Each(labels) => labels.clone(),
    };
    let is_there = |node: &&Arc<NodeRecord>| now <= node.gone && !node.draining && labels.is_subset(&node.labels);
    let mut there = known.nodes.iter().filter(is_there).peekable();
    match there.peek().copied() {
        None => Some(Fact::NoEligibleNode(labels)),
        Some(_) if there.any(|node| node.may_start()) => None,
        Some(first) => Some(Fact::KeeperFails(Arc::clone(first))),
    }
}

/// The keeper that a run waits for, if that keeper fails: the run is about to start its program or to end it.
fn waits_for_keeper(run: &Run, known: &KnownRecords) -> Option<Hindrance> {
    let owner = run.owner.filter(|_| matches!(run.state, State::Starting | State::Stopping))?.node;
    let node = known.nodes.iter().find(|node| node.id == owner && node.keeper_problem.is_some())?;
    Some(Hindrance::Keeper(Arc::clone(node)))
}

/// The unfinished runs: those with a program first, then the waiting ones in the order of the queue.
fn on_their_way(job: &JobRecord, known: &KnownRecords, now: Instant) -> Vec<Fact> {
    let mut runs: Vec<&Arc<Run>> =
        known.runs.iter().filter(|run| run.job == job.id && !run.state.is_finished()).collect();
    let in_queue = |run: &Run| {
        let queue = known.state.as_ref().map_or(&[][..], |state| &state.queue);
        queue.iter().position(|queued| queued.run == run.id).unwrap_or(queue.len())
    };
    runs.sort_by_cached_key(|run| (!run.state.has_program(), in_queue(run), run.due, run.number));
    let left = runs.len().saturating_sub(RUNS_SHOWN);
    let shown = runs.into_iter().take(RUNS_SHOWN);
    let mut facts: Vec<Fact> =
        shown.map(|run| Fact::OnItsWay(Arc::clone(run), hindrance(run, job, known, now))).collect();
    if left > 0 {
        facts.push(Fact::MoreOnTheirWay(left));
    }
    facts
}

/// What blocks a run, checked in the same order as decisions do.
fn hindrance(run: &Run, job: &JobRecord, known: &KnownRecords, now: Instant) -> Option<Hindrance> {
    if run.state.has_program() {
        return waits_for_keeper(run, known);
    }
    if known.is_paused() && !run.is_by_operator() {
        return Some(Hindrance::Pause);
    }
    if run.state == State::Scheduled && run.due.is_none_or(|due| due > now) {
        return None;
    }
    if let Some((node, unable)) = run.target.and_then(|node| Some((node, unable(node, job, known, now)?))) {
        return Some(Hindrance::Target(node, unable));
    }
    if nodes(job, known, now).is_some() {
        return Some(Hindrance::Nodes);
    }
    let held = run.lock.as_ref().and_then(|name| known.locks.iter().find(|lock| lock.name == *name));
    if let Some(lock) = held.filter(|lock| lock.holder != run.id) {
        return Some(held_by(lock, known));
    }
    let state = known.state.as_ref()?;
    let is_rival = |target| can_overlap(&job.job.nodes, target, run.target);
    let row: Vec<RunId> =
        state.queue.iter().filter(|queued| is_rival(queued.target)).map(|queued| queued.run).collect();
    let position = row.iter().position(|queued| *queued == run.id).unwrap_or(0);
    if let (OverlapPolicy::Queue { .. }, Some(before)) = (job.job.overlap, position.checked_sub(1)) {
        return Some(Hindrance::Queue(row[before], position));
    }
    let others: Vec<_> = state.active.iter().filter(|active| active.run != run.id && is_rival(active.target)).collect();
    match others.first() {
        Some(active) if job.job.overlap != OverlapPolicy::Allow => Some(Hindrance::Active(active.run, others.len())),
        _ if !job.job.conditions.is_empty() => Some(Hindrance::Conditions),
        _ => None,
    }
}

/// The holder of a lock. A holder that is not one of our runs is only a token, which means nothing to a user, so the
/// latest foreign run is shown instead.
fn held_by(lock: &LockState, known: &KnownRecords) -> Hindrance {
    match known.run(lock.holder) {
        Some(run) => Hindrance::Lock(lock.name.clone(), run.id),
        None => {
            let running = known.foreign.clone().filter(|run| run.is_running);
            Hindrance::ForeignLock(lock.name.clone(), running)
        }
    }
}

/// Why the only node that may start a run cannot; `None` if it can, or if no nodes are known.
fn unable(node: NodeId, job: &JobRecord, known: &KnownRecords, now: Instant) -> Option<Unable> {
    if known.nodes.is_empty() {
        return None;
    }
    match known.nodes.iter().find(|there| there.id == node && now <= there.gone) {
        None => Some(Unable::Gone),
        Some(there) if !job.job.nodes.allow(&there.labels) => Some(Unable::Labels),
        Some(there) if there.draining => Some(Unable::Draining),
        Some(there) => there.keeper_problem.as_ref().map(|_| Unable::Keeper),
    }
}

/// The run that ended last.
fn last_run<'a>(job: &JobRecord, known: &'a KnownRecords) -> Option<&'a Arc<Run>> {
    let finished = known.runs.iter().filter(|run| run.job == job.id && run.state.is_finished());
    finished.max_by_key(|run| (run.finished(), run.number))
}

fn prospect(
    job: &JobRecord,
    id: &ScheduleId,
    schedule: &JobSchedule,
    known: &KnownRecords,
    world: &DecisionContext,
    now: Instant,
) -> Prospect {
    if !job.job.enables(schedule) {
        return Prospect::Disabled;
    }
    if let Err(error) = job.compile(schedule, world) {
        return Prospect::CannotAsk(error);
    }
    if matches!(schedule.spec.timing, Timing::Triggered | Timing::Never) {
        return Prospect::NotByTime;
    }
    let Some(cursor) = cursor(job, id, known) else { return Prospect::NoCursor };
    let Some(nominal) = cursor.next else {
        return match cursor.follows {
            Some(run) => Prospect::AfterRun(run),
            None if cursor.at_start => Prospect::AtStart,
            None => Prospect::Over(cursor.last),
        };
    };
    let wake = cursor.wake.unwrap_or(nominal);
    match wake <= now {
        _ if known.is_paused() => Prospect::Rests(nominal),
        true => Prospect::Due { nominal, wake },
        false => Prospect::Next { nominal, wake },
    }
}
