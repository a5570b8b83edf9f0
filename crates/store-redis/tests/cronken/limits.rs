//! Results are limited in number, and keys of the wrong type are left alone.

use cronhold_core::State;
use cronhold_core::record::RecordKey;
use cronhold_store::Store;
use cronhold_store::conformance::block_on;
use serde_json::json;

use crate::place::{NS, Place};

fn end(place: &Place, job: &str, state: State) -> String {
    let mut run = place.running(job);
    place.enter(&mut run, state);
    run.id.to_string()
}

#[test]
fn results_of_a_job_are_limited() {
    let place = Place::with("job_results=3&all_results=100");
    let other = end(&place, "other", State::Success);
    let failed = end(&place, "backup", State::Failure);
    let all: Vec<String> = (0..5).map(|_| end(&place, "backup", State::Success)).collect();
    assert_eq!(place.members("results:backup:success"), all[2..], "the latest stay");
    let general: Vec<String> = std::iter::once(&other).chain(&all[2..]).cloned().collect();
    assert_eq!(place.members("results:success"), general, "what fell out there falls out here");
    assert_eq!(place.members("results:backup:fail"), std::slice::from_ref(&failed), "each kind has its own");
    let mut left: Vec<String> = general.iter().chain([&failed]).cloned().collect();
    let found = place.at("HKEYS", "rundata", &[]);
    let mut found: Vec<String> = serde_json::from_value(found).expect("names");
    left.sort();
    found.sort();
    assert_eq!(found, left, "metadata are removed with the results");
}

#[test]
fn results_of_all_jobs_are_limited() {
    let place = Place::with("job_results=10&all_results=4");
    let all: Vec<String> = (0..6).map(|number| end(&place, &format!("job{}", number % 2), State::Failure)).collect();
    assert_eq!(place.members("results:fail"), all[2..]);
    assert_eq!(place.members("results:job0:fail"), [all[0].clone(), all[2].clone(), all[4].clone()]);
    assert_eq!(place.at("HLEN", "rundata", &[]), json!(6), "what its job still shows keeps its metadata");
}

#[test]
fn removed_result_is_not_added_again() {
    let place = Place::with("job_results=1");
    let mut first = place.running("backup");
    place.enter(&mut first, State::Success);
    let second = end(&place, "backup", State::Success);
    assert_eq!(place.rundata(first.id), None);
    place.enter(&mut first, State::Failure);
    assert_eq!(place.rundata(first.id), None, "a mark is not a new end");
    assert_eq!(place.members("results:success"), [second]);
    assert_eq!(place.kind("results:fail"), "none");
}

#[test]
fn shared_keys_of_wrong_type_do_not_block_commits() {
    let place = Place::new();
    for key in ["rundata", "rundata:active", "results:success", "results:backup:success", "jobs:paused"] {
        place.ask(&["SET", &format!("{NS}:{key}"), "mine"]);
    }
    let mut run = place.running("backup");
    place.ask(&["SET", &format!("{NS}:rundata:output:{}", run.id), "mine"]);
    assert_eq!(place.append(run.id, 0, b"line\n"), Ok(5));
    place.enter(&mut run, State::Success);
    assert!(place.load(&RecordKey::Run(run.id)).is_some(), "our own record is there");
    for key in ["rundata", "rundata:active", "results:success", "results:backup:success", "jobs:paused"] {
        assert_eq!(place.at("GET", key, &[]), json!("mine"), "{key} is as it was");
    }
    let health = block_on(place.store.health());
    let is_reported = health.trouble.iter().chain(&health.warnings).any(|text| text.contains("wrong type"));
    assert!(is_reported, "the health report has a warning: {health:?}");
}
