//! A waiting run that could start does so within two seconds: a node that is able to work is woken by the commit that
//! makes the start possible, whichever node has made it, and does not depend on polling. Lost notifications and slow
//! calls are excused.

use std::collections::BTreeMap;

use cronhold_core::decision::RecordChange;
use cronhold_core::job::OverlapPolicy;
use cronhold_core::policy::overlap::can_overlap;
use cronhold_core::record::{JobRecord, JobState, LockName, NodeRecord, Record, Run};
use cronhold_core::{JobId, NodeId, RunId, State};
use cronhold_schedule::Span;
use cronhold_store::{Unit, UnitReceipt};

use super::condition_oracle::{ConditionOracle, depends_on_time};
use super::fitness::FaultWindows;
use super::{CheckResult, CheckerContext, DaemonChange, InvariantChecker};
use crate::store_model::name;

/// The time within which a run has to start.
const WITHIN: Span = Span::from_secs(2);
/// A check of a run takes up to this many calls, some of them behind a batch that is in flight.
const CALLS: u64 = 24;
/// A node that lost a notification finds the run within this time by its due time or by the watchdog.
const LOST_HINT: Span = Span::from_secs(150);
/// Waiting runs beyond which a simulation is not checked, because that would take too long.
const RUNS_MAX: usize = 300;

/// Tracks waiting runs that could start.
#[derive(Debug, Default)]
pub(super) struct LateWakeChecker {
    /// Since when each waiting run could start.
    startable: BTreeMap<RunId, Span>,
    /// When each lock was last taken.
    taken: BTreeMap<LockName, Span>,
    /// When the state of each job last changed.
    changed: BTreeMap<JobId, Span>,
    /// When the pause of all jobs last changed.
    pause_changed: Span,
    fitness: FaultWindows,
    /// Until when a node may not know what has changed, or waits for a slow call.
    delayed: BTreeMap<NodeId, Span>,
}

impl InvariantChecker for LateWakeChecker {
    fn name(&self) -> &'static str {
        "a waiting run that can start does so within seconds"
    }

    fn before(&mut self, context: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for change in &unit.changes {
            match change {
                RecordChange::Put(Record::Pause(_)) => self.pause_changed = context.at,
                RecordChange::Put(Record::Job(job)) => drop(self.changed.insert(job.id.clone(), context.at)),
                RecordChange::Put(Record::JobState(state)) => {
                    self.changed.insert(state.job.clone(), context.at);
                }
                RecordChange::Put(Record::Node(node)) => {
                    self.fitness.daemon_changed(Some(node.id), DaemonChange::Disturbed, context.at);
                }
                RecordChange::Put(Record::Run(run)) => self.check(context, run)?,
                _ => {}
            }
        }
        for take in &unit.take {
            self.taken.insert(take.lock.clone(), context.at);
        }
        Ok(())
    }

    fn after(&mut self, context: CheckerContext<'_>, _: &Unit, _: &UnitReceipt) -> CheckResult {
        self.scan(context)
    }

    fn heartbeat(&mut self, context: CheckerContext<'_>, node: &NodeRecord) -> CheckResult {
        self.fitness.heartbeat(node.id, context.at);
        self.scan(context)
    }

    fn daemon_changed(&mut self, context: CheckerContext<'_>, node: Option<NodeId>, change: DaemonChange) {
        let until = match change {
            DaemonChange::SlowCall { until } => until,
            DaemonChange::HintLost => context.at.plus(LOST_HINT),
            _ => return self.fitness.daemon_changed(node, change, context.at),
        };
        if let Some(node) = node {
            let delayed = self.delayed.entry(node).or_default();
            *delayed = until.max(*delayed);
        }
    }
}

impl LateWakeChecker {
    /// Finds the waiting runs that can start now, and those that could have started long ago.
    fn scan(&mut self, context: CheckerContext<'_>) -> CheckResult {
        let model = context.model;
        let waiting = || {
            let unfinished = model.unfinished.values().flatten().filter_map(|run| model.runs.get(run));
            unfinished.filter(|run| run.state == State::Waiting)
        };
        if waiting().count() > RUNS_MAX {
            self.startable.clear();
            return Ok(());
        }
        let mut startable = BTreeMap::new();
        for run in waiting().filter(|run| can_start(context, run)) {
            let since = self.startable.get(&run.id).copied().unwrap_or(context.at);
            startable.insert(run.id, since);
        }
        self.startable = startable;
        self.startable.keys().filter_map(|run| model.runs.get(run)).try_for_each(|run| self.check(context, run))
    }

    /// Checks a run that may have been able to start for long.
    fn check(&self, context: CheckerContext<'_>, run: &Run) -> CheckResult {
        let Some(since) = self.startable.get(&run.id) else { return Ok(()) };
        let Some(job) = context.model.jobs.get(&run.job) else { return Ok(()) };
        let is_fit = |node: &&std::sync::Arc<NodeRecord>| {
            node.may_start() && job.job.nodes.allow(&node.labels) && run.target.is_none_or(|target| target == node.id)
        };
        let since_fit = |node: NodeId| {
            let fit = self.fitness.since(node, context.at, context.is_shared)?;
            Some(fit.max(self.delayed.get(&node).copied().unwrap_or_default()))
        };
        let nodes = context.model.nodes.values().filter(is_fit);
        let Some(fit) = nodes.filter_map(|node| since_fit(node.id)).min() else { return Ok(()) };
        let taken = run.lock.as_ref().and_then(|lock| self.taken.get(lock)).copied().unwrap_or_default();
        let changed = self.changed.get(&run.job).copied().unwrap_or_default();
        let since = since.max(&fit).max(&taken).max(&changed).max(&self.pause_changed);
        let bound = WITHIN.plus(Span::from_micros(2 * CALLS * context.usual.micros()));
        if since.plus(bound) < context.at {
            let waited = context.at.minus(*since);
            return Err(format!("{} could start for {waited}", name(run)));
        }
        Ok(())
    }
}

/// Whether nothing blocks a waiting run.
fn can_start(context: CheckerContext<'_>, run: &Run) -> bool {
    let model = context.model;
    let Some(job) = model.jobs.get(&run.job).filter(|job| job.uid == run.uid) else { return false };
    let Some(state) = model.states.get(&run.job) else { return false };
    let is_paused = model.has_pause(&run.job) && !run.is_by_operator();
    let is_locked = run.lock.as_ref().is_some_and(|lock| model.locks.contains_key(lock));
    if is_paused || is_locked || !is_admitted(context, run, job, state) || depends_on_time(&job.job.conditions) {
        return false;
    }
    ConditionOracle { model, run, job, now: context.now }.holds()
}

/// Whether the overlap policy of a job lets a waiting run start. Retries count as active while they wait.
fn is_admitted(context: CheckerContext<'_>, run: &Run, job: &JobRecord, state: &JobState) -> bool {
    let is_rival = |other: RunId, target| other != run.id && can_overlap(&job.job.nodes, target, run.target);
    let is_first = || {
        let first = state.queue.iter().find(|queued| can_overlap(&job.job.nodes, queued.target, run.target));
        first.is_none_or(|first| first.run == run.id)
    };
    let has_room = state.active.len() < JobState::ACTIVE_MAX;
    let is_alone = !state.active.iter().any(|active| is_rival(active.run, active.target));
    let has_program = |other: RunId| context.model.runs.get(&other).is_some_and(|other| other.state.has_program());
    // `max_running` counts retries that wait as well, which the oracle does not.
    let is_counted = state.active.iter().all(|active| active.run == run.id || has_program(active.run));
    let is_admitted = match job.job.overlap {
        OverlapPolicy::Allow => has_room,
        OverlapPolicy::Queue { .. } => is_alone && is_first(),
        OverlapPolicy::Skip | OverlapPolicy::Replace => is_alone,
    };
    is_admitted && (is_counted || job.job.conditions.is_empty())
}
