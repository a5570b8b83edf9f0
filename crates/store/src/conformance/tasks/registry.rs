//! Worker processes and their classes.

use cronhold_core::task::TaskStatus;
use cronhold_schedule::Span;

use super::super::block_on;
use super::TaskSubject;
use super::fixture::{TaskFixture, class_name, queue_name, run};
use crate::tasks::{HeartbeatReply, LeaseClass, ProcessHeartbeat, ProcessId, ProcessSignal};

fn classes(fixture: &TaskFixture) -> String {
    let classes = block_on(fixture.store.classes(&queue_name())).expect("classes can be read");
    classes.iter().map(|(name, config)| format!("{name}{}", config.text)).collect::<Vec<_>>().join(" ")
}

fn processes(fixture: &TaskFixture) -> Vec<String> {
    let processes = block_on(fixture.store.processes()).expect("processes can be read");
    processes.iter().map(|process| process.id.to_string()).collect()
}

fn beat_of(fixture: &TaskFixture, process: &str, is_quiet: bool) -> HeartbeatReply {
    let process = ProcessId::new(process);
    let beat = ProcessHeartbeat { process, held: Vec::new(), is_quiet, lease: Span::from_secs(60) };
    block_on(fixture.store.heartbeat(beat)).expect("a process can beat")
}

fn beat(fixture: &TaskFixture, process: &str, is_quiet: bool) -> Option<ProcessSignal> {
    beat_of(fixture, process, is_quiet).signal
}

/// Classes of live processes add up; those that no process has had for a day are removed.
pub fn registered_classes_are_those_of_live_processes(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::on(subject.store(), 1);
    fixture.register("host:1", &[("A", "{}"), ("B", r#"{"icon":"x","inports":{"in":{}}}"#)]);
    assert_eq!(classes(&fixture), r#"A{} B{"icon":"x","inports":{"in":{}}}"#, "unknown fields are kept");
    fixture.register("host:2", &[("B", "{}"), ("C", "{}")]);
    assert_eq!(classes(&fixture), "A{} B{} C{}");
    fixture.register("host:1", &[("D", "{}")]);
    assert_eq!(classes(&fixture), "B{} C{} D{}");
    subject.pass(Span::from_secs(60));
    fixture.register("host:1", &[("D", "{}")]);
    assert_eq!((classes(&fixture).as_str(), processes(&fixture)), ("B{} C{} D{}", vec!["host:1".to_owned()]));
    subject.pass(Span::from_secs(24 * 3_600 - 61));
    fixture.register("host:1", &[("D", "{}")]);
    assert_eq!(classes(&fixture), "B{} C{} D{}");
    subject.pass(Span::from_secs(1));
    fixture.register("host:1", &[("D", "{}")]);
    assert_eq!((classes(&fixture).as_str(), processes(&fixture)), ("D{}", vec!["host:1".to_owned()]));
    fixture.deregister("host:1");
    assert_eq!((classes(&fixture).as_str(), processes(&fixture)), ("D{}", Vec::new()), "tasks can still be created");
}

/// Two processes with different classes restart, and one of them comes back first.
pub fn tasks_wait_while_the_process_of_their_class_restarts(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::on(subject.store(), 1);
    for process in ["host:1", "host:2"] {
        let class = if process == "host:1" { "Pass" } else { "Pipe" };
        fixture.register(process, &[(class, "{}")]);
    }
    let (waiting, other) = (fixture.create("Pass"), fixture.create("Pipe"));
    fixture.deregister("host:1");
    fixture.deregister("host:2");
    subject.pass(Span::from_secs(90));
    fixture.register("host:4", &[("Pipe", "{}")]);
    let pipe = || vec![LeaseClass { name: class_name("Pipe"), has_startup: false }];
    assert_eq!(fixture.lease_classes(9, pipe()).iter().map(|step| step.window.task.id).collect::<Vec<_>>(), [other]);
    fixture.act(run(waiting));
    assert_eq!(fixture.status(waiting), TaskStatus::Queued);
    fixture.register("host:3", &[("Pass", "{}")]);
    fixture.lease_of(waiting);
}

/// Rows of processes that have ended do not pile up.
pub fn process_that_a_later_one_replaces_is_forgotten(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::on(subject.store(), 1);
    for process in ["host:1", "host:2", "host:3"] {
        fixture.register(process, &[("Pass", "{}")]);
    }
    subject.pass(Span::from_secs(60));
    fixture.register("host:4", &[("Pass", "{}")]);
    for process in ["host:1", "host:2", "host:3"] {
        assert!(beat_of(&fixture, process, false).is_unknown, "it has to register again");
    }
    assert!(!beat_of(&fixture, "host:4", false).is_unknown);
}

/// A process that was away for long is alive again with its next heartbeat, if nothing has replaced it.
pub fn process_that_was_away_is_alive_again(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::on(subject.store(), 1);
    fixture.register("host:1", &[("Pass", "{}")]);
    subject.pass(Span::from_secs(600));
    fixture.register("host:2", &[("Pipe", "{}")]);
    assert_eq!(processes(&fixture), ["host:2"]);
    let signal = block_on(fixture.store.signal(&ProcessId::new("host:1"), ProcessSignal::Stop));
    assert!(!signal.expect("signals can be sent"), "it is not alive");
    assert!(!beat_of(&fixture, "host:1", false).is_unknown);
    assert_eq!(processes(&fixture), ["host:1", "host:2"]);
}

pub fn registration_is_published(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::on(subject.store(), 1);
    let mut listener = fixture.listen(&["/sidejob/workers/testq"]);
    fixture.register("host:1", &[("B", r#"{"icon":"x"}"#), ("A", "{}")]);
    let heard = fixture.heard(&mut *listener, "/sidejob/workers/testq");
    assert_eq!(heard, [r#"/sidejob/workers/testq {"A":{},"B":{"icon":"x"}}"#]);
}

pub fn processes_are_listed_while_they_beat(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    fixture.register("host:2", &[("Pass", "{}")]);
    assert_eq!(processes(&fixture), ["host:1", "host:2"]);
    subject.pass(Span::from_secs(40));
    assert_eq!(beat(&fixture, "host:2", true), None);
    subject.pass(Span::from_secs(40));
    assert_eq!(processes(&fixture), ["host:2"]);
    let found = block_on(fixture.store.processes()).expect("processes can be read");
    assert!(found[0].is_quiet && found[0].busy == 0 && found[0].concurrency == 2);
}

pub fn signals_are_delivered_once_and_in_order(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let send = |process: &str, signal| {
        block_on(fixture.store.signal(&ProcessId::new(process), signal)).expect("signals can be sent")
    };
    assert!(!send("host:9", ProcessSignal::Stop), "it is unknown");
    assert!(send("host:1", ProcessSignal::Quiet) && send("host:1", ProcessSignal::Stop));
    assert!(send("host:1", ProcessSignal::Quiet), "it waits already");
    let received: Vec<Option<ProcessSignal>> = (0..3).map(|_| beat(&fixture, "host:1", false)).collect();
    assert_eq!(received, [Some(ProcessSignal::Quiet), Some(ProcessSignal::Stop), None]);
}
