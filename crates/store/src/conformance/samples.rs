//! Plain records for cases whose subject is not the content.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::args::Args;
use cronhold_core::job::{Job, Program, RunEvent};
use cronhold_core::policy::catch_up::CountedRange;
use cronhold_core::record::{
    ActionId, ActionRecord, ActionStatus, ActivePause, ActiveRun, Actor, Backlog, ClaimedRanges, Cursor, Identity,
    JobRecord, JobSource, JobState, LockName, NodeRecord, PauseState, PendingTrigger, Pool, PoolName, Record,
    ResolvedAction, Run, RunOwner, ScheduleId, SkipSpan, Transition, TriggerId, TriggerSet,
};
use cronhold_core::run::Reason;
use cronhold_core::{JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span};

/// An instant `secs` seconds after 2026-01-01T00:00:00Z.
pub(crate) fn at(secs: i64) -> Instant {
    Instant::from_secs(1_767_225_600 + secs)
}

pub(crate) fn job_id(text: &str) -> JobId {
    JobId::parse(text).expect("a job's id")
}

pub(crate) fn schedule_id(text: &str) -> ScheduleId {
    ScheduleId::parse(text).expect("a schedule's id")
}

pub(crate) fn lock_name(text: &str) -> LockName {
    LockName::parse(text).expect("a lock's name")
}

/// The id of a run at a second; `number` distinguishes and orders runs of the same second.
pub(crate) fn run_id(secs: i64, number: u16) -> RunId {
    let [high, low] = number.to_be_bytes();
    RunId::from_random(at(secs), [0, 0, 0x3f, high, low, 0, 0, 0, 0, 0])
}

pub(crate) fn args(pairs: &[(&str, &str)]) -> Args {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn pause(why: &str) -> Record {
    let current =
        ActivePause { since: at(1), by: Actor::Operator("anna".to_owned()), why: why.to_owned(), until: None };
    Record::Pause(Arc::new(PauseState { current: Some(current), last: None }))
}

/// A job without a program, with a description.
pub(crate) fn job(id: &str, description: &str) -> Record {
    let mut job = Job::new(Program::Noop { duration: Span::ZERO });
    job.description = description.to_owned();
    let uid = JobUid::from_bits(7);
    Record::Job(Arc::new(JobRecord::new(job_id(id), uid, Arc::new(job), "UTC".into(), JobSource::Api)))
}

/// A job state; its next run number serves as a counter.
pub(crate) fn job_state(job: &str, next_number: u64) -> Record {
    let mut state = JobState::new(job_id(job));
    state.next_number = next_number;
    Record::JobState(Arc::new(state))
}

/// The counter in a job state.
pub(crate) fn counter(record: &Record) -> u64 {
    match record {
        Record::JobState(state) => state.next_number,
        other => panic!("a set of runs is one, and not {other:?}"),
    }
}

pub(crate) fn cursor(job: &str, schedule: &str, wake: Option<Instant>) -> Record {
    Record::Cursor(Arc::new(Cursor {
        job: job_id(job),
        schedule: schedule_id(schedule),
        since: at(0),
        last: None,
        next: wake,
        wake,
        revision: 1,
        zones: "2026a".into(),
        generation: 0,
        follows: None,
        at_start: false,
        streak: None,
        claimed: ClaimedRanges::default(),
    }))
}

pub(crate) fn backlog(job: &str, schedule: &str, due: Instant) -> Record {
    let (job, schedule) = (job_id(job), schedule_id(schedule));
    Record::Backlog(Arc::new(Backlog {
        job,
        schedule,
        from: at(0),
        position: at(1),
        to: at(2),
        count: 3,
        due,
        later: Vec::new(),
    }))
}

pub(crate) fn identity(job: &str, pairs: &[(&str, &str)]) -> Record {
    Record::Identity(Arc::new(Identity::new(job_id(job), args(pairs))))
}

/// A waiting run with the nominal time of its id.
pub(crate) fn run(id: RunId, job: &str) -> Run {
    let made = Transition::entered(id.time(), State::Waiting, Actor::Schedule);
    let blank = Run::blank(id, RunNumber(1), job_id(job), JobUid::from_bits(7), id.time());
    Run { log: vec![made], ..blank }
}

/// A run in a state, optionally on a node.
pub(crate) fn run_in(id: RunId, job: &str, state: State, node: Option<u128>) -> Record {
    let owner = node.map(|node| RunOwner { node: NodeId::from_bits(node), incarnation: 1 });
    Record::Run(Arc::new(Run { state, owner, ..run(id, job) }))
}

/// A waiting run that is due at `due`.
pub(crate) fn run_due(id: RunId, job: &str, due: Option<Instant>) -> Record {
    Record::Run(Arc::new(Run { due, ..run(id, job) }))
}

/// A waiting run that is due at `due` and late at `late_at`.
pub(crate) fn run_late(id: RunId, due: Option<Instant>, late_at: Option<Instant>) -> Record {
    Record::Run(Arc::new(Run { due, late_at, ..run(id, "a") }))
}

/// A span of `count` skips that starts at the time of its id.
pub(crate) fn skip_span(id: RunId, job: &str, count: u32) -> SkipSpan {
    let range = CountedRange { from: id.time(), to: id.time().plus(Span::from_secs(count.into())), count };
    let (number, job, uid) = (RunNumber(2), job_id(job), JobUid::from_bits(7));
    let log = vec![Transition::entered(id.time(), State::Skipped, Actor::Schedule)];
    let (args, schedule, reason) = (Args::new(), schedule_id("s"), Reason::Missed);
    SkipSpan { id, number, job, uid, args, schedule, range, reason, actions: 0, log }
}

/// An action of a run that is due at `due`, or done if `None`.
pub(crate) fn action(run: RunId, number: u32, due: Option<Instant>) -> Record {
    let status = match due {
        Some(due) => ActionStatus::Pending { due, owner: None },
        None => ActionStatus::Done { at: at(9) },
    };
    Record::Action(Arc::new(ActionRecord {
        id: ActionId::new(run, number),
        job: job_id("a"),
        event: RunEvent::Finished,
        created: run.time(),
        work: ResolvedAction::Run { job: job_id("b"), args: BTreeMap::new(), inherited: Args::new(), trigger: None },
        attempts: 1,
        failures: 0,
        error: None,
        status,
    }))
}

/// A pool with this many active runs.
pub(crate) fn pool(name: &str, count: u16) -> Record {
    let active = (0..count).map(|number| ActiveRun { run: run_id(1, number), args: u64::MAX, target: None });
    Record::Pool(Arc::new(Pool { name: PoolName::parse(name).expect("a name"), active: active.collect() }))
}

/// Triggers of a job with this many pending ones, due at `due`; none pending if `due` is `None`.
pub(crate) fn triggers(job: &str, due: Option<Instant>) -> Record {
    let mut set = TriggerSet::new(job_id(job));
    if due.is_some() {
        let id = TriggerId::parse("a").expect("an id");
        set.add(PendingTrigger { id, at: at(1), by: Actor::Action, args: args(&[("x", "1")]), message: None });
    }
    set.due = due;
    Record::Triggers(Arc::new(set))
}

pub(crate) fn node(bits: u128, name: &str) -> NodeRecord {
    NodeRecord { beat: at(1), gone: at(7), ..NodeRecord::new(NodeId::from_bits(bits), name, 1, at(0)) }
}

/// One plain record of each kind that units write, in two variants with the same key.
pub(crate) fn each_kind() -> Vec<(Record, Record)> {
    let id = run_id(1, 1);
    let identity_of = |at| {
        let outcome = cronhold_core::record::LatestOutcome { run: id, at };
        let mut identity = Identity::new(job_id("a"), args(&[("x", "1")]));
        identity.outcomes.success = Some(outcome);
        Record::Identity(Arc::new(identity))
    };
    let span_of = |count| Record::SkipSpan(Arc::new(skip_span(run_id(1, 2), "a", count)));
    vec![
        (pause("first"), pause("second")),
        (job("a", "first"), job("a", "second")),
        (job_state("a", 1), job_state("a", 2)),
        (cursor("a", "s", Some(at(1))), cursor("a", "s", None)),
        (backlog("a", "s", at(1)), backlog("a", "s", at(2))),
        (identity_of(at(1)), identity_of(at(2))),
        (run_in(id, "a", State::Waiting, None), run_in(id, "a", State::Running, Some(1))),
        (span_of(3), span_of(4)),
        (action(id, 1, Some(at(1))), action(id, 1, None)),
        (pool("db", 1), pool("db", 2)),
        (triggers("a", Some(at(1))), triggers("a", None)),
    ]
}
