//! Each checker receives an invalid event and must report it. This file contains the fixtures; its submodules test
//! invalid commits, invalid programs, and events that are too early or too late.

mod commits;
mod programs;
mod times;

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_core::decision::{LockTake, RecordChange};
use cronhold_core::job::{Job, OverlapPolicy, Program};
use cronhold_core::policy::catch_up::CountedRange;
use cronhold_core::record::{
    Actor, JobRecord, JobSource, JobState, LockName, NodeRecord, Record, RecordVersion, Run, RunOwner, ScheduleId,
    SkipSpan, Transition,
};
use cronhold_core::run::Reason;
use cronhold_core::{DecisionContext, JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Unit, UnitReceipt};

use super::{CheckerContext, CheckerSet, ObservedLaunch};
use crate::store_model::StoreModel;

const UID: JobUid = JobUid::from_bits(1);
const NODE: NodeId = NodeId::from_bits(1);

fn job_id() -> JobId {
    JobId::parse("j").expect("a letter")
}

fn schedule_id() -> ScheduleId {
    ScheduleId::parse("s").expect("a letter")
}

/// A run that has passed through these states.
fn run(number: u64, states: &[State]) -> Run {
    let nominal = Instant::from_secs(1_000 + i64::try_from(number).expect("small"));
    let entry = |state: &State| Transition::entered(nominal, *state, Actor::Schedule);
    let id = RunId::from_key(nominal, &number.to_string());
    let state = *states.last().expect("a state");
    let reason = match state {
        State::Failure => Some(Reason::ExitCode(1)),
        State::Error => Some(Reason::NodeLost),
        State::Skipped => Some(Reason::Overlap),
        _ => None,
    };
    Run {
        schedule: Some(schedule_id()),
        state,
        reason,
        owner: states.contains(&State::Starting).then_some(RunOwner { node: NODE, incarnation: 1 }),
        log: states.iter().map(entry).collect(),
        ..Run::blank(id, RunNumber(number), job_id(), UID, nominal)
    }
}

fn job() -> Record {
    job_with(|_| {})
}

/// A job whose runs must not overlap, further configured by `configure`.
fn job_with(configure: impl FnOnce(&mut Job)) -> Record {
    let mut job = Job::new(Program::Noop { duration: Span::ZERO });
    job.overlap = OverlapPolicy::Skip;
    configure(&mut job);
    Record::Job(Arc::new(JobRecord::new(job_id(), UID, Arc::new(job), "UTC".into(), JobSource::Api)))
}

/// The job state that agrees with these runs.
fn state(runs: &[&Run]) -> Record {
    let mut state = JobState::new(job_id());
    for run in runs {
        if run.state.has_program() {
            state.activate(run);
        } else if run.state == State::Waiting {
            state.queue.push(run.id.into());
        }
    }
    Record::JobState(Arc::new(state))
}

fn put(run: &Run) -> Record {
    Record::Run(Arc::new(run.clone()))
}

/// The span of skips that begins with a skipped run.
fn span(run: &Run, range: CountedRange) -> Record {
    Record::SkipSpan(Arc::new(
        SkipSpan::from_listed_run(run.clone(), range).expect("a run with a schedule and a reason"),
    ))
}

fn unit(records: impl IntoIterator<Item = Record>) -> Unit {
    let changes = records.into_iter().map(RecordChange::Put).collect();
    Unit { version: RecordVersion::new(1, 1), compare: Vec::new(), changes, take: Vec::new(), free: Vec::new() }
}

/// Passes events to checkers, one after the other.
struct Bench {
    checkers: CheckerSet,
    model: StoreModel,
    world: DecisionContext,
    at: Span,
    is_shared: bool,
}

impl Bench {
    /// All checkers, with a job on a local store.
    fn new() -> Self {
        Self::with(CheckerSet::default(), job(), false)
    }

    /// One checker, with a job on a local store.
    fn of(checker: &str) -> Self {
        Self::with(CheckerSet::only(checker), job(), false)
    }

    /// One checker, with a job on a shared store.
    fn shared(checker: &str, job: Record) -> Self {
        Self::with(CheckerSet::only(checker), job, true)
    }

    fn with(checkers: CheckerSet, job: Record, is_shared: bool) -> Self {
        let (model, world, at) = (StoreModel::default(), crate::world(), Span::from_secs(1_000));
        let mut bench = Self { checkers, model, world, at, is_shared };
        bench.commit(&unit([job]));
        bench
    }

    fn notify(&mut self, notify: impl FnOnce(&mut CheckerSet, CheckerContext<'_>)) {
        let now = Instant::EPOCH.plus(self.at);
        let Self { checkers, model, world, at, is_shared } = self;
        let (usual, is_shared, kept_max) = (Span::ZERO, *is_shared, None);
        notify(checkers, CheckerContext { model, world, at: *at, now, usual, is_shared, kept_max });
    }

    fn pass(&mut self, secs: u64) {
        self.at = self.at.plus(Span::from_secs(secs));
    }

    fn commit(&mut self, unit: &Unit) {
        let fences = unit.take.iter().map(|take| (take.lock.clone(), 7)).collect();
        self.commit_with(unit, fences);
    }

    fn commit_with(&mut self, unit: &Unit, fences: Vec<(LockName, u64)>) {
        self.notify(|checkers, context| checkers.before(context, unit));
        self.model.apply(unit, Instant::EPOCH.plus(self.at));
        self.notify(|checkers, context| checkers.after(context, unit, &UnitReceipt { fences }));
    }

    fn beat(&mut self, node: &Arc<NodeRecord>) {
        self.model.beat(node, &[], Instant::EPOCH.plus(self.at));
        self.notify(|checkers, context| checkers.heartbeat(context, node));
    }

    fn launch(&mut self, run: &Run, fence: Option<u64>, kill_at: Option<u64>) {
        let launch = ObservedLaunch { run, node: NODE, fence, kill_at: kill_at.map(Span::from_secs) };
        self.notify(|checkers, context| checkers.launched(context, &launch));
    }

    fn end(&mut self, run: &Run) {
        self.notify(|checkers, context| checkers.ended(context, run.id));
    }

    fn rest(&mut self) {
        self.pass(9_000);
        self.notify(|checkers, context| checkers.at_rest(context));
    }

    fn finding(&self) -> String {
        self.checkers.finding().map(|finding| finding.to_string()).unwrap_or_default()
    }

    #[track_caller]
    fn expect(&self, expected: &str) {
        let found = self.finding();
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{found}\ninstead of\n{expected}");
    }
}

/// A node with a label.
fn node(label: &str, draining: bool) -> Arc<NodeRecord> {
    let at = Instant::EPOCH;
    Arc::new(NodeRecord {
        id: NODE,
        name: "n1".to_owned(),
        incarnation: 1,
        since: at,
        beat: at,
        gone: at,
        labels: BTreeSet::from([label.to_owned()]),
        draining,
        skew: None,
        zones: String::new(),
        keeper_problem: None,
    })
}

/// A starting run with a lock, and the unit that takes the lock.
fn locked(number: u64, lock: &LockName, lease: Option<Span>) -> (Run, Unit) {
    let mut run = run(number, &[State::Waiting, State::Starting]);
    run.lock = Some(lock.clone());
    run.terms.lease = lease;
    let take = LockTake { lock: lock.clone(), holder: run.id, ttl: lease };
    let unit = Unit { take: vec![take], ..unit([put(&run)]) };
    (run, unit)
}
