//! Runs that wait for something that another node changes.

use cronhold_core::job::{Condition, OverlapPolicy, Requirement};

use super::*;

/// After so many polls, a node has done everything that is due.
const POLLS_MAX: usize = 100;

/// The heartbeat of another node, which cannot start programs.
fn beat_of_broken_node(node: &TestNode) {
    let gone = START.plus(Span::from_secs(86_400));
    let keeper_problem = Some("its disk is full".to_owned());
    let other = NodeRecord { gone, keeper_problem, ..NodeRecord::new(NodeId::from_bits(9), "nine", 1, START) };
    at_once(node.store.beat(&other, &[])).expect("the store works");
}

/// Usually a node leaves such a run for a moment to the node that made it possible. That one may not start it here.
#[test]
fn run_is_started_at_once_when_a_node_that_may_not_start_it_has_ended_its_blocker() {
    let mut node = TestNode::new(0);
    let mut job = Job::new(Program::Noop { duration: Span::ZERO });
    job.overlap = OverlapPolicy::Allow;
    job.conditions = vec![Condition::new(Requirement::MaxRunning { count: 1, same_args: false, pool: None })];
    let (source, uid, provided) = (JobSource::Api, JobUid::from_bits(1), Precondition::Any);
    node.request(Command::PutJob { id: job_id("j"), job: Arc::new(job), source, uid, provided });
    for number in [1, 2] {
        node.request(run("j", number));
    }
    node.until(|node, _| (stored_run(node, 1).state == State::Starting).then_some(()));
    beat_of_broken_node(&node);
    node.pass(Span::from_secs(3));
    assert_eq!(stored_run(&node, 2).state, State::Waiting);
    let Some(Record::JobState(of_job)) = node.record(RecordKey::JobState(job_id("j"))) else {
        panic!("the job has runs");
    };
    let of_job = JobState { active: Vec::new(), ..(*of_job).clone() };
    let ended = Run { state: State::Success, ..stored_run(&node, 1) };
    let changes = [Record::Run(Arc::new(ended)), Record::JobState(Arc::new(of_job))];
    write(&node.store, changes.map(RecordChange::Put).to_vec());
    // No time passes from here on.
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..POLLS_MAX {
        assert!(node.engine.as_mut().poll(&mut context).is_pending(), "the node does not stop");
    }
    assert_eq!(stored_run(&node, 2).state, State::Starting);
}

fn stored_run(node: &TestNode, number: u32) -> Run {
    match node.record(RecordKey::Run(id_of(number))) {
        Some(Record::Run(run)) => (*run).clone(),
        other => panic!("{other:?}"),
    }
}

fn id_of(number: u32) -> RunId {
    RunId::from_key(START, &format!("j {number}"))
}
