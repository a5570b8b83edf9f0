//! The total size of outputs: the node deletes the oldest ones above it.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::command::Command;
use cronhold_schedule::Span;
use cronhold_store::Store;

use super::{OUTPUTS_MAX, START, TestNode, at_once, job_id, put_failing_job};

#[test]
fn oldest_outputs_are_deleted_above_the_total_size() {
    let mut node = TestNode::new(0);
    put_failing_job(&mut node, "j");
    let ids: Vec<RunId> = (1..=4).map(|number| RunId::from_key(START.plus(Span::from_secs(number)), "run")).collect();
    let third = vec![b'x'; usize::try_from(OUTPUTS_MAX / 3).expect("few")];
    for id in &ids {
        let args = BTreeMap::from([("x".to_owned(), "no date".to_owned())]);
        node.request(Command::Run { job: job_id("j"), args, id: *id, at: None, stop: None });
        at_once(node.store.append(*id, 0, &third)).expect("the store works");
    }
    node.until(|node, _| (at_once(node.store.outputs(None, 9)).expect("a list") == ids[1..]).then_some(()));
    node.pass(Span::from_secs(700));
    assert_eq!(at_once(node.store.outputs(None, 9)).expect("a list"), ids[1..], "the others fit");
}
