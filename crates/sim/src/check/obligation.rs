//! Every obligation is met or repaired within one watchdog period. An obligation is a record whose time has come: an
//! occurrence to claim, a run to check, a backlog to work on. It is late if an eligible node has been able to work for
//! a whole period and a margin, and nothing blocked it.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{JobRecord, LockName, NodeRecord, Record, RecordKey, Run};
use cronhold_core::{JobId, NodeId, RunId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Unit, UnitReceipt};

use super::fitness::FaultWindows;
use super::{CheckResult, CheckerContext, DaemonChange, InvariantChecker, ending};
use crate::store_model::name;

/// The watchdog runs every minute and repairs what is five seconds late. A pass and the turn after it take several
/// calls of up to two seconds each way, and other work of the node may come first: the margin for that is 25 seconds.
const WITHIN: Span = Span::from_secs(60 + 5 + 25);

/// Tracks pending and late obligations.
#[derive(Debug, Default)]
pub(super) struct ObligationChecker {
    /// When each is due by the store's clock, and since when it is due in the time of the simulation.
    due: BTreeMap<RecordKey, (Instant, Option<Span>)>,
    coming: BTreeSet<(Instant, RecordKey)>,
    /// Due obligations, by the time of their next check.
    late: BTreeSet<(Span, RecordKey)>,
    fitness: FaultWindows,
    /// When all jobs, or a job, were last resumed or changed, or a run of the job last ended.
    all_free_since: Span,
    free_since: BTreeMap<JobId, Span>,
    /// When each lock was last taken or released.
    held: BTreeMap<LockName, Span>,
}

/// The result of checking a due obligation.
enum ObligationStatus {
    /// No longer due: the clock was set back.
    Early,
    /// To be checked again at this time.
    Again(Span),
    /// Late, and nothing explains it.
    Late(String),
}

impl InvariantChecker for ObligationChecker {
    fn name(&self) -> &'static str {
        "every obligation is met within a watchdog period"
    }

    fn before(&mut self, context: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in ending(context.model, unit) {
            self.free_since.insert(run.job.clone(), context.at);
        }
        for lock in unit.free.iter().map(|free| &free.lock).chain(unit.take.iter().map(|take| &take.lock)) {
            self.held.insert(lock.clone(), context.at);
        }
        for change in &unit.changes {
            match change {
                RecordChange::Put(Record::Pause(_)) => self.all_free_since = context.at,
                RecordChange::Put(Record::Job(job)) => drop(self.free_since.insert(job.id.clone(), context.at)),
                RecordChange::Put(Record::JobState(state)) => {
                    let before = context.model.states.get(&state.job).map(|state| &state.pauses);
                    if before.is_some_and(|before| *before != state.pauses) {
                        self.free_since.insert(state.job.clone(), context.at);
                    }
                }
                RecordChange::Put(Record::Node(node)) => {
                    self.fitness.daemon_changed(Some(node.id), DaemonChange::Disturbed, context.at);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn after(&mut self, context: CheckerContext<'_>, unit: &Unit, _: &UnitReceipt) -> CheckResult {
        for change in &unit.changes {
            match change {
                RecordChange::Put(record) => self.set(record.key(), record.due()),
                RecordChange::Delete(key) => self.set(key.clone(), None),
            }
        }
        self.tick(context)
    }

    fn heartbeat(&mut self, context: CheckerContext<'_>, node: &NodeRecord) -> CheckResult {
        self.fitness.heartbeat(node.id, context.at);
        self.tick(context)
    }

    fn daemon_changed(&mut self, context: CheckerContext<'_>, node: Option<NodeId>, change: DaemonChange) {
        self.fitness.daemon_changed(node, change, context.at);
    }
}

impl ObligationChecker {
    fn set(&mut self, key: RecordKey, due: Option<Instant>) {
        let before = self.due.get(&key).copied();
        if before.map(|(at, _)| at) == due {
            return;
        }
        if let Some((at, _)) = before {
            self.coming.remove(&(at, key.clone()));
            self.due.remove(&key);
        }
        if let Some(at) = due {
            self.coming.insert((at, key.clone()));
            self.due.insert(key, (at, None));
        }
    }

    /// Checks what has become due and what has been due for long.
    fn tick(&mut self, context: CheckerContext<'_>) -> CheckResult {
        while let Some((at, key)) = self.coming.first().filter(|(at, _)| *at <= context.now).cloned() {
            self.coming.remove(&(at, key.clone()));
            self.due.insert(key.clone(), (at, Some(context.at)));
            self.late.insert((context.at.plus(WITHIN), key));
        }
        while let Some((when, key)) = self.late.first().filter(|(when, _)| *when <= context.at).cloned() {
            self.late.remove(&(when, key.clone()));
            // An obligation that was met has been removed or has another time.
            let Some((at, Some(since))) = self.due.get(&key).copied() else { continue };
            match self.check(context, &key, at, since) {
                ObligationStatus::Early => {
                    self.due.insert(key.clone(), (at, None));
                    self.coming.insert((at, key));
                }
                ObligationStatus::Again(when) => drop(self.late.insert((when, key))),
                ObligationStatus::Late(what) => return Err(format!("{what} was due at {at}")),
            }
        }
        Ok(())
    }

    fn check(&self, context: CheckerContext<'_>, key: &RecordKey, at: Instant, since: Span) -> ObligationStatus {
        let later = ObligationStatus::Again(context.at.plus(WITHIN));
        if at > context.now {
            return ObligationStatus::Early;
        }
        let Some((what, base, nodes)) = self.responsible(context, key) else { return later };
        let is_launch = matches!(key, RecordKey::Run(run)
            if context.model.runs.get(run).is_some_and(|run| run.state == State::Starting));
        let since_fit = |node: &NodeId| match is_launch {
            // A launch has an outcome even if the keeper fails.
            true => self.fitness.since_without_keeper(*node, context.at, context.is_shared),
            false => self.fitness.since(*node, context.at, context.is_shared),
        };
        let fit = nodes.iter().filter_map(since_fit).min();
        let Some(fit) = fit else { return later };
        let since = since.max(base).max(fit);
        match since.plus(WITHIN) {
            when if when > context.at => ObligationStatus::Again(when),
            _ => ObligationStatus::Late(what),
        }
    }

    /// The description of an obligation, since when nothing has blocked it, and which nodes can meet it; `None` if
    /// something blocks it now.
    fn responsible(&self, context: CheckerContext<'_>, key: &RecordKey) -> Option<(String, Span, Vec<NodeId>)> {
        match key {
            RecordKey::Cursor(job, schedule) => {
                let record = context.model.jobs.get(job).filter(|_| !context.model.is_paused(job, context.now))?;
                Some((format!("{job} {schedule}"), self.free_since(context, job), eligible(context, record)))
            }
            RecordKey::Backlog(job, schedule) => {
                let record = context.model.jobs.get(job).filter(|_| !context.model.is_paused(job, context.now))?;
                let lock = LockName::of(job, &record.job.lock);
                // A backlog yields to everything else.
                let is_held = lock.as_ref().is_some_and(|lock| context.model.locks.contains_key(lock));
                if is_held || context.model.unfinished(job).next().is_some() {
                    return None;
                }
                let held = lock.and_then(|lock| self.held.get(&lock).copied()).unwrap_or_default();
                let since = self.free_since(context, job).max(held);
                Some((format!("the backlog of {job} {schedule}"), since, eligible(context, record)))
            }
            RecordKey::Run(run) => self.responsible_for_run(context, *run),
            _ => None,
        }
    }

    fn responsible_for_run(&self, context: CheckerContext<'_>, run: RunId) -> Option<(String, Span, Vec<NodeId>)> {
        let run: &Run = context.model.runs.get(&run)?;
        let what = format!("{}, which is {},", name(run), run.state);
        let nodes = match run.state {
            State::Scheduled | State::Waiting => match (run.target, context.model.jobs.get(&run.job)) {
                (Some(target), _) => vec![target],
                (None, Some(job)) => eligible(context, job),
                (None, None) => context.model.nodes.keys().copied().collect(),
            },
            // Also a launch: its report, or its deadline, ends the wait.
            _ => run.owner.map(|owner| owner.node).into_iter().collect(),
        };
        Some((what, self.free_since(context, &run.job), nodes))
    }

    fn free_since(&self, context: CheckerContext<'_>, job: &JobId) -> Span {
        let free = self.free_since.get(job).copied().unwrap_or_default().max(self.all_free_since);
        // A pause that ends by itself holds nothing back from its end on, before a node has recorded that.
        let pauses = [Some(&context.model.pauses.current), context.model.states.get(job).map(|it| &it.pauses.current)];
        let ended = pauses.into_iter().flatten().flatten().filter_map(|pause| pause.until);
        let ended = ended.filter(|until| *until <= context.now).max();
        ended.map_or(free, |until| free.max(context.at.minus(context.now.since(until))))
    }
}

/// The nodes that may run a job.
fn eligible(context: CheckerContext<'_>, job: &JobRecord) -> Vec<NodeId> {
    let may = |node: &&std::sync::Arc<NodeRecord>| node.may_start() && job.job.nodes.allow(&node.labels);
    context.model.nodes.values().filter(may).map(|node| node.id).collect()
}
