//! Pauses as other programs see them: a set of jobs, which contains every job while everything is paused.

use std::sync::Arc;

use cronhold_core::JobUid;
use cronhold_core::job::{Job, Program};
use cronhold_core::record::{ActivePause, Actor, JobRecord, JobSource, JobState, PauseState, Record, RecordKey};
use cronhold_schedule::{Instant, Span};

use crate::fixture::{Fixture, job_id};

fn pauses(is_paused: bool) -> PauseState {
    let pause = ActivePause { since: Instant::from_secs(1), by: Actor::Schedule, why: String::new(), until: None };
    PauseState { current: is_paused.then_some(pause), last: None }
}

fn everything(is_paused: bool) -> Record {
    Record::Pause(Arc::new(pauses(is_paused)))
}

fn state(job: &str, is_paused: bool) -> Record {
    Record::JobState(Arc::new(JobState { pauses: pauses(is_paused), ..JobState::new(job_id(job)) }))
}

fn job(name: &str) -> Record {
    let job = Arc::new(Job::new(Program::Noop { duration: Span::ZERO }));
    Record::Job(Arc::new(JobRecord::new(job_id(name), JobUid::from_bits(7), job, "UTC".into(), JobSource::Api)))
}

fn paused(fixture: &Fixture) -> Vec<String> {
    let names = fixture.at("SMEMBERS", "jobs:paused", &[]);
    let names = names.as_array().expect("a list").iter().map(|name| name.as_str().expect("a name").to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn global_pause_shows_every_job_as_paused() {
    let fixture = Fixture::new();
    fixture.put(&[job("a"), job("b"), job("c"), state("a", true), state("b", false)]);
    assert_eq!(paused(&fixture), ["a"]);
    fixture.put(&[everything(true)]);
    assert_eq!(paused(&fixture), ["a", "b", "c"]);
    fixture.put(&[job("d")]);
    fixture.put(&[state("b", false), state("d", false)]);
    assert_eq!(paused(&fixture), ["a", "b", "c", "d"], "also a job that was added since, and one whose run has ended");
    fixture.put(&[state("a", false), state("b", true)]);
    assert_eq!(paused(&fixture), ["a", "b", "c", "d"]);
    fixture.delete(RecordKey::Job(job_id("c")));
    assert_eq!(paused(&fixture), ["a", "b", "d"]);
    fixture.put(&[everything(false)]);
    assert_eq!(paused(&fixture), ["b"], "what is paused by itself stays so");
    fixture.put(&[state("b", false)]);
    assert_eq!(fixture.kind("jobs:paused"), "none");
    // All changes in one unit.
    fixture.put(&[everything(true), job("e"), state("e", true)]);
    assert_eq!(paused(&fixture), ["a", "b", "d", "e"]);
    fixture.put(&[everything(false)]);
    assert_eq!(paused(&fixture), ["e"]);
}
