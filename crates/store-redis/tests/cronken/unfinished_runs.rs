//! Stages of a run before its end, and runs that are not shown at all.

use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::record::{ActivePause, Actor, JobState, Record, RecordKey};
use cronhold_core::run::Reason;
use cronhold_schedule::Instant;
use serde_json::{Value, json};

use crate::fixture::{Fixture, HOST, job_id};

const SHOWN: [&str; 6] =
    ["rundata", "rundata:active", "results:success", "results:fail", "results:backup:success", "results:backup:fail"];

#[test]
fn run_that_never_starts_is_not_shown() {
    let fixture = Fixture::new();
    for (states, reason) in [
        (&[State::Scheduled, State::Waiting][..], None),
        (&[State::Skipped], Some(Reason::Overlap)),
        (&[State::Error], Some(Reason::Unbound("no such arg".to_owned()))),
        // An operator marks it as successful although it never ran.
        (&[State::Skipped, State::Success], Some(Reason::ByOperator(String::new()))),
    ] {
        let mut run = fixture.run("backup");
        run.reason = reason;
        for state in states {
            fixture.enter(&mut run, *state);
            for key in SHOWN {
                assert_eq!(fixture.kind(key), "none", "{key} of a run that is {state}");
            }
        }
    }
}

#[test]
fn run_is_shown_when_it_starts() {
    let fixture = Fixture::new();
    let mut run = fixture.run("backup");
    fixture.enter(&mut run, State::Waiting);
    let before = fixture.time();
    fixture.enter(&mut run, State::Starting);
    let after = fixture.time();

    assert_eq!((fixture.kind("rundata"), fixture.kind("rundata:active")), ("hash".to_owned(), "zset".to_owned()));
    let first = fixture.rundata(run.id).expect("it is shown");
    let start = first["start_time"].as_str().expect("a text");
    assert_eq!(start.split_once('.').map(|(_, micros)| micros.len()), Some(6), "{start}");
    let start: f64 = start.parse().expect("a number of seconds");
    assert!(before <= start && start <= after, "{before} {start} {after}");
    let expected = json!({
        "job_name": "backup", "start_time": first["start_time"], "host": HOST, "status": "running",
        "retcode": null, "output": null, "duration": null,
    });
    assert_eq!(first, expected, "exactly these fields");
    let active = fixture.scores("rundata:active");
    assert!(active.len() == 1 && active[0].0 == run.id.to_string(), "{active:?}");
    assert!(start <= active[0].1 && active[0].1 <= after, "{start} {active:?} {after}");

    for state in [State::Running, State::Stopping] {
        fixture.enter(&mut run, state);
        assert_eq!(fixture.rundata(run.id), Some(first.clone()), "nothing is new when it is {state}");
        assert_eq!(fixture.scores("rundata:active"), active);
    }
    for key in &SHOWN[2..] {
        assert_eq!(fixture.kind(key), "none", "{key} before the end");
    }
}

#[test]
fn unknown_node_is_shown_by_its_id() {
    let fixture = Fixture::new();
    let mut run = fixture.run("backup");
    fixture.move_on(&mut run, State::Starting);
    run.owner =
        run.owner.map(|owner| cronhold_core::record::RunOwner { node: cronhold_core::NodeId::from_bits(9), ..owner });
    fixture.put(&[Record::Run(Arc::new(run.clone()))]);
    assert_eq!(fixture.rundata(run.id).expect("it is shown")["host"], format!("{:032x}", 9));
}

#[test]
fn names_are_escaped_as_json() {
    let fixture = Fixture::new();
    let run = fixture.running("reports/größe.v2");
    assert_eq!(fixture.rundata(run.id).expect("it is shown")["job_name"], "reports/größe.v2");
}

#[test]
fn paused_jobs_are_a_set() {
    let fixture = Fixture::new();
    let paused = || {
        let mut names: Vec<Value> = fixture.at("SMEMBERS", "jobs:paused", &[]).as_array().expect("a list").clone();
        names.sort_by_key(Value::to_string);
        names
    };
    let set = |job: &str, is_paused: bool| {
        let mut state = JobState::new(job_id(job));
        let pause = ActivePause { since: Instant::from_secs(1), by: Actor::Schedule, why: String::new(), until: None };
        state.pauses.current = is_paused.then_some(pause);
        Record::JobState(Arc::new(state))
    };
    fixture.put(&[set("a", false), set("b", false)]);
    assert_eq!(fixture.kind("jobs:paused"), "none");
    fixture.put(&[set("a", true), set("b", true)]);
    assert_eq!(fixture.kind("jobs:paused"), "set");
    assert_eq!(paused(), ["a", "b"]);
    fixture.put(&[set("a", false)]);
    assert_eq!(paused(), ["b"]);
    fixture.delete(RecordKey::JobState(job_id("b")));
    assert_eq!(fixture.kind("jobs:paused"), "none");
}
