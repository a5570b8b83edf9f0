//! Stages of a run before its end, and runs that are not shown at all.

use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::record::{ActivePause, Actor, JobState, Record, RecordKey};
use cronhold_core::run::Reason;
use cronhold_schedule::Instant;
use serde_json::{Value, json};

use crate::place::{HOST, Place, job_id};

const SHOWN: [&str; 6] =
    ["rundata", "rundata:active", "results:success", "results:fail", "results:backup:success", "results:backup:fail"];

#[test]
fn run_that_never_starts_is_not_shown() {
    let place = Place::new();
    for (states, reason) in [
        (&[State::Scheduled, State::Waiting][..], None),
        (&[State::Skipped], Some(Reason::Overlap)),
        (&[State::Error], Some(Reason::Unbound("no such arg".to_owned()))),
        // An operator marks it as successful although it never ran.
        (&[State::Skipped, State::Success], Some(Reason::ByOperator(String::new()))),
    ] {
        let mut run = place.run("backup");
        run.reason = reason;
        for state in states {
            place.enter(&mut run, *state);
            for key in SHOWN {
                assert_eq!(place.kind(key), "none", "{key} of a run that is {state}");
            }
        }
    }
}

#[test]
fn run_is_shown_when_it_starts() {
    let place = Place::new();
    let mut run = place.run("backup");
    place.enter(&mut run, State::Waiting);
    let before = place.time();
    place.enter(&mut run, State::Starting);
    let after = place.time();

    assert_eq!((place.kind("rundata"), place.kind("rundata:active")), ("hash".to_owned(), "zset".to_owned()));
    let first = place.rundata(run.id).expect("it is shown");
    let start = first["start_time"].as_str().expect("a text");
    assert_eq!(start.split_once('.').map(|(_, micros)| micros.len()), Some(6), "{start}");
    let start: f64 = start.parse().expect("a number of seconds");
    assert!(before <= start && start <= after, "{before} {start} {after}");
    let expected = json!({
        "job_name": "backup", "start_time": first["start_time"], "host": HOST, "status": "running",
        "retcode": null, "output": null, "duration": null,
    });
    assert_eq!(first, expected, "exactly these fields");
    // JSON numbers are parsed with a possible error in the last bit, so microseconds are compared.
    let micros = |seconds: f64| (seconds * 1e6).round();
    let scores: Vec<_> = place.scores("rundata:active").into_iter().map(|(id, score)| (id, micros(score))).collect();
    assert_eq!(scores, [(run.id.to_string(), micros(start))]);

    for state in [State::Running, State::Stopping] {
        place.enter(&mut run, state);
        assert_eq!(place.rundata(run.id), Some(first.clone()), "nothing is new when it is {state}");
        assert_eq!(place.scores("rundata:active"), [(run.id.to_string(), start)]);
    }
    for key in &SHOWN[2..] {
        assert_eq!(place.kind(key), "none", "{key} before the end");
    }
}

#[test]
fn unknown_node_is_shown_by_its_id() {
    let place = Place::new();
    let mut run = place.run("backup");
    place.move_on(&mut run, State::Starting);
    run.owner =
        run.owner.map(|owner| cronhold_core::record::RunOwner { node: cronhold_core::NodeId::from_bits(9), ..owner });
    place.put(&[Record::Run(Arc::new(run.clone()))]);
    assert_eq!(place.rundata(run.id).expect("it is shown")["host"], format!("{:032x}", 9));
}

#[test]
fn names_are_escaped_as_json() {
    let place = Place::new();
    let run = place.running("reports/größe.v2");
    assert_eq!(place.rundata(run.id).expect("it is shown")["job_name"], "reports/größe.v2");
}

#[test]
fn paused_jobs_are_a_set() {
    let place = Place::new();
    let paused = || {
        let mut names: Vec<Value> = place.at("SMEMBERS", "jobs:paused", &[]).as_array().expect("a list").clone();
        names.sort_by_key(Value::to_string);
        names
    };
    let set = |job: &str, is_paused: bool| {
        let mut state = JobState::new(job_id(job));
        let pause = ActivePause { since: Instant::from_secs(1), by: Actor::Schedule, why: String::new() };
        state.pauses.current = is_paused.then_some(pause);
        Record::JobState(Arc::new(state))
    };
    place.put(&[set("a", false), set("b", false)]);
    assert_eq!(place.kind("jobs:paused"), "none");
    place.put(&[set("a", true), set("b", true)]);
    assert_eq!(place.kind("jobs:paused"), "set");
    assert_eq!(paused(), ["a", "b"]);
    place.put(&[set("a", false)]);
    assert_eq!(paused(), ["b"]);
    place.delete(RecordKey::JobState(job_id("b")));
    assert_eq!(place.kind("jobs:paused"), "none");
}
