//! Stores that keep less than jobs ask for, and stores that are sealed.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::command::Command;
use cronhold_core::decision::{CommandReply, Rejection};
use cronhold_core::record::{Record, RecordKey, ScheduleId};
use cronhold_engine::RequestError;
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query, RunQuery, Store, StoreLimits};

use super::{NODE, START, TestNode, at_once, job_id, put, put_failing_job};

/// Requests runs of a job that fail at once, and returns their ids.
fn fail_runs(node: &mut TestNode, count: u64) -> Vec<RunId> {
    let ids: Vec<RunId> =
        (1..=count).map(|number| RunId::from_key(START.plus(Span::from_secs(number)), "run")).collect();
    for id in &ids {
        let args = BTreeMap::from([("x".to_owned(), "no date".to_owned())]);
        node.request(Command::Run { job: job_id("j"), args, id: *id, at: None, stop: None });
        at_once(node.store.append(*id, 0, b"text")).expect("the store works");
    }
    ids
}

fn count_runs(node: &TestNode, job: &str) -> usize {
    let query = Query::Runs(RunQuery { job: Some(job_id(job)), ..RunQuery::default() });
    at_once(node.store.page(&query, 1_000)).expect("the store works").len()
}

#[test]
fn store_that_keeps_fewer_runs_and_outputs_than_jobs_retain_is_pruned() {
    let limits = StoreLimits { kept: Some(3), outputs: Some(2), ..StoreLimits::default() };
    let mut node = TestNode::with_limits(limits);
    put_failing_job(&mut node, "j");
    let ids = fail_runs(&mut node, 40);
    // The limit, one eighth of it, and 8: runs are deleted in batches.
    node.until(|node, _| (count_runs(node, "j") <= 3 + 8).then_some(()));
    node.pass(Span::from_secs(700));
    let left = count_runs(&node, "j");
    assert!((3..=3 + 8).contains(&left), "{left} runs are left");
    assert!(node.record(RecordKey::Run(ids[39])).is_some(), "the latest run is left");
    assert_eq!(at_once(node.store.outputs(None, 9)).expect("a list"), ids[38..], "the latest outputs are left");
}

/// The args of runs that wait do not fit into one unit, and those of finished runs and their outcomes are moved in several.
#[test]
fn rename_respects_the_size_of_a_unit() {
    const UNIT: u64 = 60_000;
    const RUNS: u64 = 20;
    let mut node = TestNode::with_limits(StoreLimits { unit: Some(UNIT), ..StoreLimits::default() });
    put_failing_job(&mut node, "old");
    let request = |number: u64, at: Option<Instant>| {
        let args = BTreeMap::from([("x".to_owned(), format!("no date {number} {}", "x".repeat(5_000)))]);
        let id = RunId::from_key(START.plus(Span::from_secs(number)), "run");
        Command::Run { job: job_id("old"), args, id, at, stop: None }
    };
    let rename = |from: &str, to: &str, next_number: u64, scheduled: &[RunId]| Command::RenameJob {
        from: job_id(from),
        to: job_id(to),
        scheduled: scheduled.to_vec(),
        next_number,
    };
    let later = START.plus(Span::from_secs(86_400));
    let scheduled: Vec<RunId> = (1..=RUNS)
        .map(|number| match node.request(request(number, Some(later))) {
            CommandReply::Run { id, .. } => id,
            other => panic!("{other:?}"),
        })
        .collect();
    let refused = node.try_request(rename("old", "new", RUNS + 1, &scheduled));
    let Err(RequestError::Rejected(Rejection::ChangeTooLarge { size, limit, .. })) = refused else {
        panic!("{refused:?}")
    };
    assert!(limit == UNIT && size > UNIT, "{size}");
    for id in scheduled {
        node.request(Command::Skip { run: id, why: String::new() });
    }
    for number in 1..=RUNS {
        let _ = node.request(request(RUNS + number, None));
    }
    node.request(rename("old", "new", 2 * RUNS + 1, &[]));
    // The walk moves what the request would have moved.
    node.until(|node, _| match node.record(RecordKey::JobState(job_id("new"))) {
        Some(Record::JobState(state)) if state.renaming.is_none() => Some(()),
        _ => None,
    });
    assert_eq!(count_runs(&node, "old"), 0);
    assert!(count_runs(&node, "new") >= RUNS as usize);
}

#[test]
fn sealed_store_starts_nothing_until_it_is_unsealed() {
    let mut node = TestNode::new(0);
    node.request(put("scheduled", "@every 10s"));
    node.until(|node, _| node.latest_run("scheduled").map(|_| ()));
    let cursor = |node: &TestNode| {
        let schedule = ScheduleId::parse("s").expect("an id");
        node.record(RecordKey::Cursor(job_id("scheduled"), schedule))
    };
    at_once(node.store.seal("it moves")).expect("sealed");
    let before = (cursor(&node), count_runs(&node, "scheduled"));
    node.pass(Span::from_secs(60));
    assert_eq!((cursor(&node), count_runs(&node, "scheduled")), before);
    let pause = || Command::Pause { job: None, why: String::new(), until: None };
    assert_eq!(node.try_request(pause()), Err(RequestError::Failed(Fault::sealed("it moves"))));
    let health = at_once(node.store.health());
    assert_eq!(health.sealed.as_deref(), Some("it moves"));
    let beat = |node: &TestNode| match node.record(RecordKey::Node(NODE)) {
        Some(Record::Node(node)) => node.beat,
        other => panic!("{other:?}"),
    };
    let earlier = beat(&node);
    node.pass(Span::from_secs(10));
    assert!(beat(&node) > earlier, "heartbeats continue");

    at_once(node.store.unseal()).expect("unsealed");
    node.until(|node, _| (cursor(node) != before.0).then_some(()));
}
