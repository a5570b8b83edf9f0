//! Retention of ad hoc runs: their jobs, states and runs are deleted after a week, and the oldest before that if there are
//! too many.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::command::Command;
use cronhold_core::job::{Job, Param, Program};
use cronhold_core::policy::retention::AD_HOC_MAX;
use cronhold_core::record::{Record, RecordKey};
use cronhold_core::{JobId, NameMap, RunId, State, Template};
use cronhold_schedule::Span;

use super::{START, TestNode};

/// An ad hoc run that ends at once, because its program cannot be resolved.
fn ended_at_once(node: &mut TestNode, number: u64) -> RunId {
    let mut job = Job::new(Program::Shell(Template::parse("{{ date(x) }}").expect("a template")));
    job.params = NameMap::from([("x".to_owned(), Param::default())]);
    // The ids are in the order of the numbers.
    let id = RunId::from_key(START.plus(Span::from_secs(number)), "ad hoc");
    let args = BTreeMap::from([("x".to_owned(), "no date".to_owned())]);
    node.request(Command::RunAdHoc { job: Arc::new(job), args, id, at: None, stop: None });
    id
}

/// Whether job, state and run of an ad hoc run are stored.
fn there(node: &TestNode, id: RunId) -> [bool; 3] {
    let job = JobId::of_ad_hoc_run(id);
    [RecordKey::Job(job.clone()), RecordKey::JobState(job), RecordKey::Run(id)].map(|key| node.record(key).is_some())
}

#[test]
fn ad_hoc_runs_are_deleted_a_week_after_they_ended() {
    let mut node = TestNode::new(0);
    node.pass(Span::from_secs(1));
    let ended = ended_at_once(&mut node, 1);
    assert!(matches!(node.record(RecordKey::Run(ended)), Some(Record::Run(run)) if run.state == State::Error));
    let active = RunId::from_key(START, "active");
    let job = Arc::new(Job::new(Program::Noop { duration: Span::ZERO }));
    node.request(Command::RunAdHoc { job, args: BTreeMap::new(), id: active, at: None, stop: None });
    node.days(6);
    node.pass(Span::from_secs(90));
    assert_eq!(there(&node, ended), [true; 3]);
    node.days(2);
    node.until(|node, _| (there(node, ended) == [false; 3]).then_some(()));
    assert_eq!(there(&node, active), [true; 3], "it has not ended");
}

#[test]
fn oldest_ad_hoc_runs_are_deleted_if_there_are_too_many() {
    let mut node = TestNode::new(0);
    node.pass(Span::from_secs(1));
    let count = AD_HOC_MAX as u64 + 2;
    let ids: Vec<RunId> = (1..=count).map(|number| ended_at_once(&mut node, number)).collect();
    node.until(|node, _| (there(node, ids[1]) == [false; 3]).then_some(()));
    assert_eq!(there(&node, ids[0]), [false; 3]);
    node.pass(Span::from_secs(700));
    assert_eq!(there(&node, ids[2]), [true; 3]);
}
