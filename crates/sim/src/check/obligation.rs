//! Every obligation is met or repaired within one period of the watchdog. An obligation is a record whose time has come:
//! an occurrence to claim, a run to look at, a backlog to work. It is late when a node that may do it has been able to
//! work for a whole period and a little more, and nothing was in the way.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{JobRecord, LockName, NodeRecord, Record, RecordKey, Run};
use cronhold_core::{JobId, NodeId, RunId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Unit, UnitReceipt};

use super::fitness::FaultWindows;
use super::{CheckResult, CheckerContext, DaemonChange, InvariantChecker, ending};
use crate::store_model::name;

/// The watchdog looks every minute, at what is five seconds late. A pass and the turn after it take some calls, each of
/// up to two seconds each way, and others of the node may come before them: twenty-five seconds are left to that.
const WITHIN: Span = Span::from_secs(60 + 5 + 25);

/// Remembers what is to come and what is late.
#[derive(Debug, Default)]
pub(super) struct ObligationChecker {
    /// When each is due, by the store's clock, and since when it is.
    due: BTreeMap<RecordKey, (Instant, Option<Span>)>,
    coming: BTreeSet<(Instant, RecordKey)>,
    /// What is due, by when it is looked at.
    late: BTreeSet<(Span, RecordKey)>,
    fitness: FaultWindows,
    /// When everything and each job was last resumed or changed, and when a run of it last ended.
    all_free_since: Span,
    free_since: BTreeMap<JobId, Span>,
    /// When each lock was last held.
    held: BTreeMap<LockName, Span>,
}

/// What a look at something late says.
enum ObligationStatus {
    /// It is not due any more: the clock went back.
    Early,
    /// It is looked at again then.
    Again(Span),
    /// It is late without excuse.
    Late(String),
}

impl InvariantChecker for ObligationChecker {
    fn name(&self) -> &'static str {
        "every obligation is met within a watchdog period"
    }

    fn before(&mut self, scene: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in ending(scene.model, unit) {
            self.free_since.insert(run.job.clone(), scene.at);
        }
        for lock in unit.free.iter().map(|free| &free.lock).chain(unit.take.iter().map(|take| &take.lock)) {
            self.held.insert(lock.clone(), scene.at);
        }
        for change in &unit.changes {
            match change {
                RecordChange::Put(Record::Pause(_)) => self.all_free_since = scene.at,
                RecordChange::Put(Record::Job(job)) => drop(self.free_since.insert(job.id.clone(), scene.at)),
                RecordChange::Put(Record::JobState(state)) => {
                    let before = scene.model.states.get(&state.job).map(|state| &state.pauses);
                    if before.is_some_and(|before| *before != state.pauses) {
                        self.free_since.insert(state.job.clone(), scene.at);
                    }
                }
                RecordChange::Put(Record::Node(node)) => {
                    self.fitness.turned(Some(node.id), DaemonChange::Disturbed, scene.at)
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn after(&mut self, scene: CheckerContext<'_>, unit: &Unit, _: &UnitReceipt) -> CheckResult {
        for change in &unit.changes {
            match change {
                RecordChange::Put(record) => self.set(record.key(), record.due()),
                RecordChange::Delete(key) => self.set(key.clone(), None),
            }
        }
        self.tick(scene)
    }

    fn beaten(&mut self, scene: CheckerContext<'_>, node: &NodeRecord) -> CheckResult {
        self.fitness.beaten(node.id, scene.at);
        self.tick(scene)
    }

    fn turned(&mut self, scene: CheckerContext<'_>, node: Option<NodeId>, turn: DaemonChange) {
        self.fitness.turned(node, turn, scene.at);
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

    /// Looks at what has become due and at what has been for long.
    fn tick(&mut self, scene: CheckerContext<'_>) -> CheckResult {
        while let Some((at, key)) = self.coming.first().filter(|(at, _)| *at <= scene.now).cloned() {
            self.coming.remove(&(at, key.clone()));
            self.due.insert(key.clone(), (at, Some(scene.at)));
            self.late.insert((scene.at.plus(WITHIN), key));
        }
        while let Some((when, key)) = self.late.first().filter(|(when, _)| *when <= scene.at).cloned() {
            self.late.remove(&(when, key.clone()));
            // What was met meanwhile is not there or waits for another time.
            let Some((at, Some(since))) = self.due.get(&key).copied() else { continue };
            match self.look(scene, &key, at, since) {
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

    fn look(&self, scene: CheckerContext<'_>, key: &RecordKey, at: Instant, since: Span) -> ObligationStatus {
        let later = ObligationStatus::Again(scene.at.plus(WITHIN));
        if at > scene.now {
            return ObligationStatus::Early;
        }
        let Some((what, base, nodes)) = self.blame(scene, key) else { return later };
        let fit = nodes.iter().filter_map(|node| self.fitness.since(*node, scene.at, scene.is_shared)).min();
        let Some(fit) = fit else { return later };
        let since = since.max(base).max(fit);
        match since.plus(WITHIN) {
            when if when > scene.at => ObligationStatus::Again(when),
            _ => ObligationStatus::Late(what),
        }
    }

    /// What something late is called, since when nothing was in its way, and which nodes could do it; nothing, when
    /// something is in its way now.
    fn blame(&self, scene: CheckerContext<'_>, key: &RecordKey) -> Option<(String, Span, Vec<NodeId>)> {
        match key {
            RecordKey::Cursor(job, schedule) => {
                let record = scene.model.jobs.get(job).filter(|_| !scene.model.is_paused(job))?;
                Some((format!("{job} {schedule}"), self.free_since(job), eligible(scene, record)))
            }
            RecordKey::Backlog(job, schedule) => {
                let record = scene.model.jobs.get(job).filter(|_| !scene.model.is_paused(job))?;
                let lock = LockName::of(job, &record.job.lock);
                // A backlog gives way to everything else.
                let is_held = lock.as_ref().is_some_and(|lock| scene.model.locks.contains_key(lock));
                if is_held || scene.model.unfinished(job).next().is_some() {
                    return None;
                }
                let held = lock.and_then(|lock| self.held.get(&lock).copied()).unwrap_or_default();
                let since = self.free_since(job).max(held);
                Some((format!("the backlog of {job} {schedule}"), since, eligible(scene, record)))
            }
            RecordKey::Run(run) => self.blame_run(scene, *run),
            _ => None,
        }
    }

    fn blame_run(&self, scene: CheckerContext<'_>, run: RunId) -> Option<(String, Span, Vec<NodeId>)> {
        let run: &Run = scene.model.runs.get(&run)?;
        let what = format!("{}, which is {},", name(run), run.state);
        let nodes = match run.state {
            State::Scheduled | State::Waiting => match (run.target, scene.model.jobs.get(&run.job)) {
                (Some(target), _) => vec![target],
                (None, Some(job)) => eligible(scene, job),
                (None, None) => scene.model.nodes.keys().copied().collect(),
            },
            // Its node asks its program, and writes nothing until that answers.
            State::Starting => return None,
            _ => run.owner.map(|owner| owner.node).into_iter().collect(),
        };
        Some((what, self.free_since(&run.job), nodes))
    }

    fn free_since(&self, job: &JobId) -> Span {
        self.free_since.get(job).copied().unwrap_or_default().max(self.all_free_since)
    }
}

/// The nodes that may run a job.
fn eligible(scene: CheckerContext<'_>, job: &JobRecord) -> Vec<NodeId> {
    let may = |node: &&std::sync::Arc<NodeRecord>| !node.draining && job.job.nodes.allow(&node.labels);
    scene.model.nodes.values().filter(may).map(|node| node.id).collect()
}
