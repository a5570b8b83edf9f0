//! Tasks are created as a whole or not at all.

use cronhold_core::task::{
    ActOutcome, JsonObject, NewTask, QueueName, TaskAct, TaskRefusal, TaskStatus, TaskTarget, TaskUnit,
};
use cronhold_schedule::Span;

use super::TaskSubject;
use super::fixture::{TaskFixture, child_name, child_of, id, json, new_task, with_inports};
use crate::tasks::{StepCall, TaskReceipt};

pub fn created_task_is_queued_once(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let now = fixture.now();
    assert_eq!((fixture.create("Pass"), fixture.create("Pass")), (id(1), id(2)), "ids count up from 1");
    let record = fixture.record(id(1));
    assert_eq!((record.status, record.created_at, record.ran_at), (TaskStatus::Queued, now, None));
    assert_eq!((record.queue.as_str(), record.class.as_str(), record.args), ("testq", "Pass", None));
    assert_eq!((record.created_by.as_str(), record.parent), ("", None));
    let first = fixture.lease_of(id(1));
    assert_eq!((first.call, first.is_first), (StepCall::Perform, true));
    assert_eq!(fixture.lease_of(id(2)).window.task.id, id(2), "tasks are performed in their order");
    assert_eq!(fixture.lease(), None, "each task has one entry");
}

pub fn refused_creation_leaves_nothing(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create("Pass");
    fixture.create_task(child_of(parent, "a", "Pass"));
    let other = QueueName::parse("other").expect("a name");
    for new in [
        new_task("Unknown"),
        NewTask { queue: other, ..new_task("Pass") },
        child_of(parent, "a", "Pass"),
        child_of(id(9), "b", "Pass"),
    ] {
        let refusal = fixture.refusal(TaskAct::Create(new));
        let is_expected = matches!(
            refusal,
            TaskRefusal::UnknownClass { .. } | TaskRefusal::ChildNameTaken { .. } | TaskRefusal::UnknownTask(_)
        );
        assert!(is_expected, "{refusal}");
    }
    assert_eq!(fixture.find("3"), None, "nothing of a refused task is stored");
    assert_eq!(fixture.create("Pass"), id(3), "no id is lost");
}

pub fn args_and_creator_are_kept(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let new = NewTask {
        args: Some(json("[1,[],{},123456789012345678901]")),
        created_by: "job:7".to_owned(),
        ..new_task("Pass")
    };
    let task = fixture.create_task(new);
    let leased = fixture.lease_of(task);
    let args = leased.window.task.args.expect("there are args");
    assert_eq!(args.as_str(), "[1,[],{},123456789012345678901]", "args stay as they were written");
    assert_eq!(leased.window.task.created_by, "job:7");
    assert_eq!(leased.window.state, [], "the creator is not in the state");
}

pub fn child_is_created_with_its_parent(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create("Pass");
    let child = fixture.create_task(child_of(parent, "job1", "Pass"));
    assert_eq!(fixture.children(parent), "job1=2");
    assert_eq!(fixture.record(child).parent, Some((parent, child_name("job1"))));
    assert_eq!(fixture.lease_many(9).len(), 2, "both are ready");
}

/// A unit can use a task that it has created.
pub fn unit_uses_the_tasks_it_creates(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let adopt = TaskAct::Adopt { parent: TaskTarget::New(0), child: TaskTarget::New(1), name: child_name("a") };
    let outcomes = fixture.commit(vec![TaskAct::Create(new_task("Pass")), TaskAct::Create(new_task("Pass")), adopt]);
    assert_eq!(outcomes, Ok(vec![ActOutcome::Created(id(1)), ActOutcome::Created(id(2)), ActOutcome::Done]));
    assert_eq!(fixture.children(id(1)), "a=2");
    let early = TaskAct::Terminate { task: TaskTarget::New(0), recursive: false };
    assert_eq!(fixture.refusal(early), TaskRefusal::UnknownNewTask(0));
}

pub fn ports_of_class_and_request_are_merged(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_task(with_inports("Pipe", r#"{"more":{"default":5},"in":{"default":null}}"#));
    assert_eq!(fixture.ports(task), "in more other | out");
    assert_eq!(fixture.read(task, "in:more").as_deref(), Some("5"));
    assert_eq!(fixture.read(task, "in:in").as_deref(), Some("null"), "the given options replace those of the class");
    assert_eq!(fixture.read(task, "in:other").as_deref(), Some("\"default\""));
}

pub fn task_for_later_waits_for_its_time(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let at = fixture.now().plus(Span::from_secs(1_000));
    let task = fixture.create_task(NewTask { at: Some(at), ..new_task("Pass") });
    let record = fixture.record(task);
    assert_eq!((record.status, record.run_at, record.entry), (TaskStatus::Queued, Some(at), None));
    assert_eq!(fixture.lease(), None);
    subject.pass(Span::from_secs(1_000));
    assert_eq!(fixture.lease_of(task).call, StepCall::Perform);
    assert_eq!(fixture.record(task).run_at, None);
}

/// A request whose reply was lost can be sent again.
pub fn request_with_a_key_takes_effect_once(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let unit = TaskUnit::request(vec![TaskAct::Create(new_task("Pass"))]).once("order-7");
    assert_eq!(fixture.commit_unit(unit.clone()), Ok(TaskReceipt::Committed(vec![ActOutcome::Created(id(1))])));
    subject.pass(Span::from_secs(23 * 3_600));
    assert_eq!(fixture.commit_unit(unit.clone()), Ok(TaskReceipt::Repeated(vec![id(1)])));
    assert_eq!(fixture.find("2"), None);
    let refused = TaskUnit::request(vec![TaskAct::Create(new_task("Unknown"))]).once("order-8");
    fixture.commit_unit(refused).expect_err("the class is unknown");
    let repaired = TaskUnit::request(vec![TaskAct::Create(new_task("Pass"))]).once("order-8");
    assert_eq!(fixture.commit_unit(repaired), Ok(TaskReceipt::Committed(vec![ActOutcome::Created(id(2))])));
    subject.pass(Span::from_secs(3_600));
    assert_eq!(fixture.commit_unit(unit), Ok(TaskReceipt::Committed(vec![ActOutcome::Created(id(3))])), "after a day");
}

/// Out ports can be given too, and a default that a request gives is written in its context.
pub fn out_ports_are_given_at_creation(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let outports = cronhold_core::task::port::parse_ports(r#"{"more":{"default":[1]}}"#).expect("ports");
    let context = JsonObject::parse(r#"{"user":"ann"}"#).expect("an object");
    let create = TaskAct::Create(NewTask { outports, ..new_task("Pipe") });
    fixture.commit_unit(TaskUnit { context: context.clone(), ..TaskUnit::request(vec![create]) }).expect("a task");
    let task = id(1);
    assert_eq!(fixture.ports(task), "in other | more out");
    assert_eq!(fixture.read(task, "out:more").as_deref(), Some("[1]"));
    let default = fixture.port(task, "out:more").and_then(|port| port.default).expect("it was given");
    assert_eq!(default.context, Some(context));
}
