//! A rename whose request was interrupted after its first unit.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::command::Command;
use cronhold_core::record::{Record, RecordKey};
use cronhold_schedule::Span;
use cronhold_store::{Query, RunQuery, Store};

use super::{START, TestNode, at_once, job_id, put_failing_job};

#[test]
fn interrupted_rename_is_completed_by_the_walk() {
    let mut node = TestNode::new(0);
    put_failing_job(&mut node, "old");
    for number in 1..=3 {
        let (id, args) = (RunId::from_key(START.plus(Span::from_secs(number)), "run"), format!("no date {number}"));
        let args = BTreeMap::from([("x".to_owned(), args)]);
        node.request(Command::Run { job: job_id("old"), args, id, at: None, stop: None });
    }
    let rename = Command::RenameJob { from: job_id("old"), to: job_id("new"), scheduled: Vec::new(), next_number: 4 };
    node.request(rename);
    let count = |node: &TestNode, name: &str| {
        let query = RunQuery { job: Some(job_id(name)), ..RunQuery::default() };
        let runs = at_once(node.store.page(&Query::Runs(query), 10)).expect("a page").records.len();
        let outcomes = at_once(node.store.page(&Query::IdentitiesOf { job: job_id(name) }, 10)).expect("a page");
        (runs, outcomes.records.len())
    };
    assert_eq!((count(&node, "old"), count(&node, "new")), ((3, 3), (0, 0)));
    node.until(|node, _| match node.record(RecordKey::JobState(job_id("new"))) {
        Some(Record::JobState(state)) if state.renaming.is_none() => Some(()),
        _ => None,
    });
    assert_eq!((count(&node, "old"), count(&node, "new")), ((0, 0), (3, 3)));
    // The old name is free again.
    put_failing_job(&mut node, "old");
}
