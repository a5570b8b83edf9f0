//! Requests for steps, and the statuses of tasks.

use cronhold_core::task::{ActOutcome, StepEnding, StepError, TaskAct, TaskRefusal, TaskStatus, TaskTarget};
use cronhold_schedule::Span;

use super::TaskSubject;
use super::fixture::{TaskFixture, child_of, class_name, id, run, run_at, set_state, terminate, write};
use crate::tasks::{LeaseClass, StepCall};

pub fn run_queues_tasks_that_have_not_ended(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    for status in [TaskStatus::Queued, TaskStatus::Running, TaskStatus::Suspended, TaskStatus::Completed] {
        let task = fixture.create_in(status);
        assert_eq!(fixture.act(run(task)), ActOutcome::Ran(Some(task)), "{status}");
        assert_eq!(fixture.status(task), TaskStatus::Queued, "{status}");
        if status != TaskStatus::Running {
            fixture.perform(task, StepEnding::Completed);
        }
        assert_eq!(fixture.lease(), None, "{status}: one step");
    }
}

pub fn run_of_ended_task_needs_force(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    for status in [TaskStatus::Failed, TaskStatus::Terminated, TaskStatus::Terminating] {
        let task = fixture.create_in(status);
        assert_eq!(fixture.act(run(task)), ActOutcome::Ran(None), "{status}");
        assert_eq!(fixture.status(task), status);
        let forced = TaskAct::Run { task: TaskTarget::Id(task), forced: true, at: None };
        assert_eq!(fixture.act(forced), ActOutcome::Ran(Some(task)), "{status}");
        assert_eq!(fixture.status(task), TaskStatus::Queued);
        assert_eq!(fixture.lease_of(task).call, StepCall::Perform, "{status}");
    }
}

pub fn write_to_ended_task_stays_in_the_port(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    for status in [TaskStatus::Failed, TaskStatus::Terminated] {
        let task = fixture.create_in(status);
        fixture.act(write(task, "in:in", &["1"]));
        assert_eq!((fixture.status(task), fixture.values(task, "in:in").as_str()), (status, "1"));
        assert_eq!(fixture.lease(), None);
    }
}

pub fn run_of_parent_queues_the_parent_only(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create_in(TaskStatus::Completed);
    let run_parent = |task| TaskAct::RunParent { task: TaskTarget::Id(task), forced: false, at: None };
    assert_eq!(fixture.act(run_parent(parent)), ActOutcome::Ran(None), "it has no parent");
    let child = fixture.create_task(child_of(parent, "a", "Pass"));
    assert_eq!(fixture.status(parent), TaskStatus::Completed);
    assert_eq!(fixture.act(run_parent(child)), ActOutcome::Ran(Some(parent)));
    assert_eq!((fixture.status(parent), fixture.status(child)), (TaskStatus::Queued, TaskStatus::Queued));
}

/// A task whose class no worker performs would wait for ever.
pub fn task_without_a_registered_class_is_terminated(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let make = || {
        fixture.register("host:2", &[("Gone", "{}")]);
        let task = fixture.create("Gone");
        fixture.deregister("host:2");
        task
    };
    let (run_later, ended_later, waiting) = (make(), make(), make());
    subject.pass(Span::from_secs(24 * 3_600));
    fixture.register("host:1", &[("Pass", "{}")]);
    assert_eq!(fixture.act(run(run_later)), ActOutcome::ClassMissing);
    assert_eq!(fixture.status(run_later), TaskStatus::Terminated);
    assert_eq!(fixture.act(terminate(ended_later, false)), ActOutcome::ClassMissing);
    assert_eq!(fixture.status(ended_later), TaskStatus::Terminated);
    assert_eq!(fixture.lease(), None);
    assert_eq!(fixture.status(waiting), TaskStatus::Queued, "its class may come back");
    fixture.register("host:2", &[("Gone", "{}")]);
    let gone = vec![LeaseClass { name: class_name("Gone"), has_startup: false }];
    assert_eq!(fixture.lease_classes(9, gone).len(), 1);
}

/// The parent of a task that ends because its class is missing makes a step, and the log names the task.
pub fn parent_notices_that_the_class_of_a_child_is_missing(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    fixture.register("host:2", &[("Gone", r#"{"inports":{"in":{}}}"#)]);
    let (ends, is_terminated) = (fixture.create_in(TaskStatus::Suspended), fixture.create_in(TaskStatus::Suspended));
    let written = fixture.create_task(child_of(ends, "a", "Gone"));
    let terminated = fixture.create_task(child_of(is_terminated, "a", "Gone"));
    fixture.deregister("host:2");
    subject.pass(Span::from_secs(24 * 3_600));
    fixture.register("host:1", &[("Pass", "{}"), ("Pipe", "{}")]);
    let mut log = fixture.listen(&["/sidejob/log"]);
    fixture.act(write(written, "in:in", &["1"]));
    fixture.act(terminate(terminated, false));
    for task in [written, terminated] {
        assert_eq!(fixture.status(task), TaskStatus::Terminated);
    }
    for parent in [ends, is_terminated] {
        assert_eq!(fixture.status(parent), TaskStatus::Queued);
    }
    let heard = fixture.heard(&mut *log, "/sidejob/log");
    let errors: Vec<&String> = heard.iter().filter(|entry| entry.contains("error")).collect();
    assert!(errors.len() == 2 && errors[0].starts_with(r#"/sidejob/log {"job":3,"#), "{heard:?}");
}

pub fn run_of_unknown_task_is_refused(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    for act in [run(id(7)), terminate(id(7), false), set_state(id(7), "a", "1"), write(id(7), "in:in", &["1"])] {
        assert_eq!(fixture.refusal(act), TaskRefusal::UnknownTask(id(7)));
    }
}

/// The earliest of several times counts, and an earlier step stands for all of them.
pub fn delayed_run_waits_for_the_earliest_time(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_in(TaskStatus::Suspended);
    let now = fixture.now();
    let at = |secs| now.plus(Span::from_secs(secs));
    assert_eq!(fixture.act(run_at(task, at(100))), ActOutcome::Ran(Some(task)));
    fixture.act(run_at(task, at(50)));
    fixture.act(run_at(task, at(70)));
    assert_eq!((fixture.status(task), fixture.record(task).run_at), (TaskStatus::Queued, Some(at(50))));
    assert_eq!(fixture.next_due(), Some(at(50)));
    subject.pass(Span::from_secs(49));
    assert_eq!(fixture.lease(), None);
    subject.pass(Span::from_secs(1));
    fixture.perform(task, StepEnding::Suspended);
    subject.pass(Span::from_secs(100));
    assert_eq!((fixture.lease(), fixture.next_due()), (None, None), "it was one request");

    fixture.act(run_at(task, fixture.now().plus(Span::from_secs(100))));
    fixture.act(write(task, "in:in", &["1"]));
    fixture.perform(task, StepEnding::Suspended);
    subject.pass(Span::from_secs(200));
    assert_eq!(fixture.lease(), None, "the step after the write stands for the delayed one");
}

pub fn run_in_the_past_is_a_run_now(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_in(TaskStatus::Suspended);
    fixture.act(run_at(task, fixture.now().minus(Span::from_secs(1))));
    assert_eq!(fixture.record(task).run_at, None);
    fixture.perform(task, StepEnding::Completed);
}

/// A step that asks for a later one and is written to meanwhile gets both: the first at once.
pub fn delayed_run_of_a_running_task_waits(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_in(TaskStatus::Suspended);
    fixture.act(run(task));
    let leased = fixture.lease_of(task);
    let at = fixture.now().plus(Span::from_secs(10));
    fixture.end(&leased, StepEnding::Suspended, vec![run_at(task, at)]).expect("it holds its task");
    let record = fixture.record(task);
    assert_eq!((record.status, record.run_at, record.entry), (TaskStatus::Queued, Some(at), None));
    assert_eq!(fixture.lease(), None);
    subject.pass(Span::from_secs(10));
    let leased = fixture.lease_of(task);
    fixture.act(write(task, "in:in", &["1"]));
    let at = fixture.now().plus(Span::from_secs(10));
    fixture.end(&leased, StepEnding::Suspended, vec![run_at(task, at)]).expect("it holds its task");
    fixture.perform(task, StepEnding::Completed);
}

pub fn forced_run_can_be_delayed(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_in(TaskStatus::Failed);
    let at = fixture.now().plus(Span::from_secs(5));
    fixture.act(TaskAct::Run { task: TaskTarget::Id(task), forced: true, at: Some(at) });
    assert_eq!((fixture.status(task), fixture.lease()), (TaskStatus::Queued, None));
    subject.pass(Span::from_secs(5));
    fixture.perform(task, StepEnding::Failed(StepError::new("again")));
    assert_eq!(fixture.status(task), TaskStatus::Failed);
}

pub fn status_changes_are_published(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let mut listener = fixture.listen(&["/sidejob/job/1"]);
    let task = fixture.create("Pass");
    fixture.act(run(task));
    fixture.perform(task, StepEnding::Completed);
    let said = |status: &str| format!(r#"/sidejob/job/1 {{"status":"{status}"}}"#);
    let expected = [said("queued"), said("running"), said("completed")];
    assert_eq!(fixture.heard(&mut *listener, "/sidejob/job/1"), expected, "each change once");

    let mut listener = fixture.listen(&["/sidejob/job/2"]);
    let silent = fixture.create("Silent");
    fixture.perform(silent, StepEnding::Completed);
    assert_eq!(fixture.heard(&mut *listener, "/sidejob/job/2"), [""; 0], "its class publishes none");
}
