//! Leases: steps are held by heartbeats, and are taken back when their worker is lost.

use cronhold_core::task::{StepEnding, TaskAct, TaskId, TaskRefusal, TaskStatus};
use cronhold_schedule::Span;

use super::super::block_on;
use super::TaskSubject;
use super::fixture::{LEASE, TaskFixture, address, child_of, class_name, port, run_at, write};
use crate::tasks::{LeaseClass, LeasedStep, ProcessHeartbeat, ProcessId, ProcessSignal};

fn beat(fixture: &TaskFixture, held: &[&LeasedStep]) -> (usize, Option<ProcessSignal>) {
    let held = held.iter().map(|leased| (leased.window.task.id, leased.step)).collect();
    let beat = ProcessHeartbeat { process: ProcessId::new("host:1"), held, is_quiet: false, lease: LEASE };
    let reply = block_on(fixture.store.heartbeat(beat)).expect("a process can beat");
    (reply.lost.len(), reply.signal)
}

pub fn heartbeats_hold_steps(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    let leased = fixture.lease_of(task);
    for _ in 0..5 {
        subject.pass(Span::from_secs(59));
        assert_eq!(beat(&fixture, &[&leased]), (0, None));
        assert_eq!(fixture.lease(), None);
    }
    fixture.finish(&leased, StepEnding::Completed);
    assert_eq!(beat(&fixture, &[&leased]), (1, None), "a step that has ended is not held");
}

pub fn lost_step_is_repeated(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    fixture.act(write(task, "in:in", &["1"]));
    let lost = fixture.lease_of(task);
    assert_eq!(fixture.next_due(), Some(fixture.now().plus(LEASE)));
    subject.pass(Span::from_secs(59));
    assert_eq!(fixture.lease(), None);
    subject.pass(Span::from_secs(1));
    let repeated = fixture.lease_of(task);
    assert_eq!(super::fixture::values(&repeated.window.inports[0].items), "1");
    assert_eq!(beat(&fixture, &[&lost, &repeated]), (1, None));
    fixture.finish(&repeated, StepEnding::Completed);
    assert_eq!(fixture.status(task), TaskStatus::Completed);
}

pub fn task_whose_workers_are_always_lost_fails(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create_in(TaskStatus::Suspended);
    let task = fixture.create_task(child_of(parent, "a", "Pass"));
    let mut listener = fixture.listen(&["/sidejob/log"]);
    for _ in 0..3 {
        fixture.lease_of(task);
        assert_eq!(fixture.status(parent), TaskStatus::Suspended);
        subject.pass(LEASE);
    }
    assert_eq!(fixture.lease_of(parent).window.children[0].status, TaskStatus::Failed, "the parent notices it");
    let logged = fixture.heard(&mut *listener, "/sidejob/log");
    assert!(logged.len() == 1 && logged[0].starts_with(r#"/sidejob/log {"job":2,"#), "{logged:?}");
}

/// Steps that succeed between lost ones reset the count of lost steps.
pub fn lost_steps_in_a_row_are_counted(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    for _ in 0..3 {
        for _ in 0..2 {
            fixture.lease_of(task);
            subject.pass(LEASE);
        }
        let leased = fixture.lease_of(task);
        fixture.end(&leased, StepEnding::Completed, vec![super::fixture::run(task)]).expect("it holds its task");
    }
    assert_eq!(fixture.status(task), TaskStatus::Queued);
}

/// Termination and writes during a step that is lost are kept.
pub fn lost_step_keeps_what_came_meanwhile(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let (ended, woken) = (fixture.create("Pass"), fixture.create("Pipe"));
    let steps = fixture.lease_many(2);
    assert_eq!(steps.len(), 2);
    fixture.act(super::fixture::terminate(ended, false));
    fixture.act(write(woken, "in:in", &["1"]));
    subject.pass(LEASE);
    assert_eq!(fixture.lease_of(ended).call, crate::tasks::StepCall::Shutdown);
    fixture.lease_of(woken);
    assert_eq!(fixture.lease(), None);
}

/// A step that was lost, refused or given back is repeated at once, although a later time was requested meanwhile.
pub fn repeated_step_does_not_wait_for_a_delayed_run(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    fixture.act(write(task, "in:in", &["1"]));
    let leased_with_delay = || {
        let leased = fixture.lease_of(task);
        fixture.act(run_at(task, fixture.now().plus(Span::from_secs(86_400))));
        leased
    };
    leased_with_delay();
    subject.pass(LEASE);
    let refused = leased_with_delay();
    let take = TaskAct::Take { port: port(task, "in:in"), position: 1, count: 1 };
    let refusal = fixture.end(&refused, StepEnding::Completed, vec![take]);
    assert_eq!(refusal, Err(TaskRefusal::ItemsTaken(address(task, "in:in"))));
    let given_back = leased_with_delay();
    fixture.finish(&given_back, StepEnding::GivenBack);
    let repeated = fixture.lease_of(task);
    assert_eq!(super::fixture::values(&repeated.window.inports[0].items), "1");
}

pub fn given_back_step_is_leased_again(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    for _ in 0..20 {
        fixture.perform(task, StepEnding::GivenBack);
        assert_eq!(fixture.status(task), TaskStatus::Queued, "it does not count as lost");
    }
    fixture.act(super::fixture::terminate(task, false));
    fixture.perform(task, StepEnding::GivenBack);
    fixture.perform(task, StepEnding::ShutDown(None));
}

/// A worker gets only the classes that it performs, and no task has to wait behind one of another class.
pub fn worker_leases_its_classes_only(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    for _ in 0..300 {
        fixture.create("Silent");
    }
    let task = fixture.create("Pass");
    let class = |name: &str| LeaseClass { name: class_name(name), has_startup: false };
    let leased = fixture.lease_classes(9, vec![class("Pass"), class("Pipe")]);
    assert_eq!(leased.iter().map(|step| step.window.task.id).collect::<Vec<TaskId>>(), [task]);
    assert_eq!(fixture.lease_classes(999, vec![class("Silent")]).len(), 300);
}

/// Waiting for arrivals ends when a task becomes ready, and when a time becomes earlier.
pub fn arrivals_wake_waiting_workers(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let queue = super::fixture::queue_name();
    let mark = || block_on(fixture.store.arrivals(&queue, None));
    let mut seen = mark();
    let mut changed = |what: &str| {
        let now = block_on(fixture.store.arrivals(&queue, Some(seen)));
        assert!(now != seen, "{what}");
        seen = mark();
    };
    let task = fixture.create("Pipe");
    changed("a new task");
    let leased = fixture.lease_of(task);
    fixture.act(write(task, "in:in", &["1"]));
    fixture.finish(&leased, StepEnding::Suspended);
    changed("a task that was written to during its step");
    fixture.perform(task, StepEnding::Suspended);
    fixture.act(run_at(task, fixture.now().plus(Span::from_secs(5))));
    changed("a delayed run");
    fixture.act(write(task, "in:in", &["1"]));
    changed("a write");
}
