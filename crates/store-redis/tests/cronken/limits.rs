//! Results are limited in number, and keys of the wrong type are left alone.

use cronhold_core::State;
use cronhold_core::record::RecordKey;
use cronhold_store::Store;
use cronhold_store::conformance::block_on;
use serde_json::json;

use crate::fixture::{Fixture, NS};

fn end(fixture: &Fixture, job: &str, state: State) -> String {
    let mut run = fixture.running(job);
    fixture.enter(&mut run, state);
    run.id.to_string()
}

#[test]
fn results_of_a_job_are_limited() {
    let fixture = Fixture::with("job_results=3&all_results=100");
    let other = end(&fixture, "other", State::Success);
    let failed = end(&fixture, "backup", State::Failure);
    let all: Vec<String> = (0..5).map(|_| end(&fixture, "backup", State::Success)).collect();
    assert_eq!(fixture.members("results:backup:success"), all[2..], "the latest stay");
    let general: Vec<String> = std::iter::once(&other).chain(&all[2..]).cloned().collect();
    assert_eq!(fixture.members("results:success"), general, "what fell out there falls out here");
    assert_eq!(fixture.members("results:backup:fail"), std::slice::from_ref(&failed), "each kind has its own");
    let mut left: Vec<String> = general.iter().chain([&failed]).cloned().collect();
    let found = fixture.at("HKEYS", "rundata", &[]);
    let mut found: Vec<String> = serde_json::from_value(found).expect("names");
    left.sort();
    found.sort();
    assert_eq!(found, left, "metadata are removed with the results");
}

#[test]
fn results_of_all_jobs_are_limited() {
    let fixture = Fixture::with("job_results=10&all_results=4");
    let all: Vec<String> = (0..6).map(|number| end(&fixture, &format!("job{}", number % 2), State::Failure)).collect();
    assert_eq!(fixture.members("results:fail"), all[2..]);
    assert_eq!(fixture.members("results:job0:fail"), [all[0].clone(), all[2].clone(), all[4].clone()]);
    assert_eq!(fixture.at("HLEN", "rundata", &[]), json!(6), "what its job still shows keeps its metadata");
}

#[test]
fn removed_result_is_not_added_again() {
    let fixture = Fixture::with("job_results=1");
    let mut first = fixture.running("backup");
    fixture.enter(&mut first, State::Success);
    let second = end(&fixture, "backup", State::Success);
    assert_eq!(fixture.rundata(first.id), None);
    fixture.enter(&mut first, State::Failure);
    assert_eq!(fixture.rundata(first.id), None, "a mark is not a new end");
    assert_eq!(fixture.members("results:success"), [second]);
    assert_eq!(fixture.kind("results:fail"), "none");
}

#[test]
fn shared_keys_of_wrong_type_do_not_block_commits() {
    let fixture = Fixture::new();
    for key in ["rundata", "rundata:active", "results:success", "results:backup:success", "jobs:paused"] {
        fixture.command(&["SET", &format!("{NS}:{key}"), "mine"]);
    }
    let mut run = fixture.running("backup");
    fixture.command(&["SET", &format!("{NS}:rundata:output:{}", run.id), "mine"]);
    assert_eq!(fixture.append(run.id, 0, b"line\n"), Ok(5));
    fixture.enter(&mut run, State::Success);
    assert!(fixture.load(&RecordKey::Run(run.id)).is_some(), "our own record is there");
    for key in ["rundata", "rundata:active", "results:success", "results:backup:success", "jobs:paused"] {
        assert_eq!(fixture.at("GET", key, &[]), json!("mine"), "{key} is as it was");
    }
    let health = block_on(fixture.store.health());
    let is_reported = health.trouble.iter().chain(&health.warnings).any(|text| text.contains("wrong type"));
    assert!(is_reported, "the health report has a warning: {health:?}");
}
