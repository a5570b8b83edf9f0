//! Parents, children, termination, deletion and aliases.

use cronhold_core::task::{
    ActOutcome, ChildTarget, NewTask, StepEnding, StepError, TaskAct, TaskId, TaskRefusal, TaskStatus, TaskTarget,
};

use super::super::block_on;
use super::TaskSubject;
use super::fixture::{
    LEASE, TaskFixture, alias, child_name, child_of, id, item, new_task, port, publish, run, set_state, terminate,
    write,
};
use crate::tasks::{PortWindow, StepCall};

fn adopt(parent: TaskId, child: TaskId, name: &str) -> TaskAct {
    TaskAct::Adopt { parent: TaskTarget::Id(parent), child: TaskTarget::Id(child), name: child_name(name) }
}

fn disown(parent: TaskId, child: ChildTarget) -> TaskAct {
    TaskAct::Disown { parent: TaskTarget::Id(parent), child }
}

fn delete(task: TaskId) -> TaskAct {
    TaskAct::Delete { task: TaskTarget::Id(task) }
}

fn add_alias(task: TaskId, name: &str) -> TaskAct {
    TaskAct::AddAlias { task: TaskTarget::Id(task), alias: alias(name) }
}

fn remove_alias(task: TaskId, name: &str) -> TaskAct {
    TaskAct::RemoveAlias { task: TaskTarget::Id(task), alias: alias(name) }
}

pub fn adopted_task_is_a_child(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let (parent, child, other) = (fixture.create("Pass"), fixture.create("Pass"), fixture.create("Pass"));
    assert_eq!(fixture.act(adopt(parent, child, "a")), ActOutcome::Done);
    assert_eq!(fixture.record(child).parent, Some((parent, child_name("a"))));
    assert_eq!(fixture.children(parent), "a=2");
    assert_eq!(fixture.refusal(adopt(other, child, "b")), TaskRefusal::HasParent { child, parent });
    let taken = TaskRefusal::ChildNameTaken { parent, name: child_name("a") };
    assert_eq!(fixture.refusal(adopt(parent, other, "a")), taken);
    assert_eq!(fixture.refusal(adopt(id(9), other, "a")), TaskRefusal::UnknownTask(id(9)));
    assert_eq!(fixture.refusal(adopt(parent, id(9), "b")), TaskRefusal::UnknownTask(id(9)));
}

/// A cycle would make recursive requests endless.
pub fn task_cannot_be_below_itself(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let root = fixture.create("Pass");
    assert_eq!(fixture.refusal(adopt(root, root, "a")), TaskRefusal::TreeCycle { parent: root, child: root });
    let child = fixture.create_task(child_of(root, "a", "Pass"));
    let grandchild = fixture.create_task(child_of(child, "a", "Pass"));
    assert_eq!(
        fixture.refusal(adopt(grandchild, root, "a")),
        TaskRefusal::TreeCycle { parent: grandchild, child: root }
    );
    assert_eq!(fixture.record(root).parent, None);
}

pub fn disowned_task_has_no_parent(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create("Pass");
    let (by_name, by_id) =
        (fixture.create_task(child_of(parent, "a", "Pass")), fixture.create_task(child_of(parent, "b", "Pass")));
    let stranger = fixture.create("Pass");
    for unknown in [ChildTarget::Name(child_name("c")), ChildTarget::Task(TaskTarget::Id(stranger))] {
        assert_eq!(fixture.refusal(disown(parent, unknown)), TaskRefusal::UnknownChild(parent));
    }
    fixture.act(disown(parent, ChildTarget::Name(child_name("a"))));
    assert_eq!((fixture.children(parent).as_str(), fixture.record(by_name).parent), ("b=3", None));
    fixture.act(disown(parent, ChildTarget::Task(TaskTarget::Id(by_id))));
    assert_eq!((fixture.children(parent).as_str(), fixture.record(by_id).parent), ("", None));
    fixture.act(adopt(stranger, by_name, "a"));
    assert_eq!(fixture.children(stranger), "a=2", "it can be adopted again");
}

pub fn step_of_a_child_runs_its_parent(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let endings = [StepEnding::Completed, StepEnding::Suspended, StepEnding::Failed(StepError::new("no"))];
    for (number, ending) in endings.into_iter().enumerate() {
        let parent = fixture.create_in(TaskStatus::Suspended);
        let child = fixture.create_task(child_of(parent, &format!("a{number}"), "Pass"));
        fixture.perform(child, ending);
        assert_eq!(fixture.status(parent), TaskStatus::Queued);
        fixture.perform(parent, StepEnding::Suspended);
        fixture.act(terminate(child, false));
        fixture.perform(child, StepEnding::ShutDown(None));
        assert_eq!(fixture.status(parent), TaskStatus::Queued, "after the termination");
        fixture.perform(parent, StepEnding::Completed);
    }
}

pub fn termination_performs_the_shutdown(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create_in(TaskStatus::Failed);
    let ran_at = fixture.record(task).ran_at;
    assert_eq!(fixture.act(terminate(task, false)), ActOutcome::Done);
    assert_eq!(fixture.status(task), TaskStatus::Terminating);
    let leased = fixture.lease_of(task);
    assert_eq!(leased.call, StepCall::Shutdown);
    let mut listener = fixture.listen(&["/sidejob/log"]);
    fixture.finish(&leased, StepEnding::ShutDown(Some(StepError::new("no farewell"))));
    assert_eq!(fixture.status(task), TaskStatus::Terminated, "an error of the shutdown changes nothing");
    let logged = fixture.heard(&mut *listener, "/sidejob/log");
    assert!(logged.len() == 1 && logged[0].contains(r#""error":"no farewell""#), "{logged:?}");
    assert_eq!(fixture.record(task).ran_at, ran_at, "a shutdown is not a run");
    fixture.act(terminate(task, false));
    assert_eq!((fixture.status(task), fixture.lease()), (TaskStatus::Terminated, None), "it is terminated already");
}

pub fn termination_takes_descendants_if_requested(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let root = fixture.create("Pass");
    let child = fixture.create_task(child_of(root, "a", "Pass"));
    let grandchild = fixture.create_task(child_of(child, "a", "Pass"));
    fixture.act(terminate(root, false));
    assert_eq!(fixture.status(child), TaskStatus::Queued);
    fixture.act(terminate(root, true));
    for task in [root, child, grandchild] {
        assert_eq!(fixture.status(task), TaskStatus::Terminating);
    }
}

/// A termination during a step is not lost, whatever the step ends with.
pub fn termination_during_a_step_is_kept(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    for ending in [StepEnding::Completed, StepEnding::Suspended, StepEnding::Failed(StepError::new("no"))] {
        let task = fixture.create("Pass");
        let leased = fixture.lease_of(task);
        fixture.act(terminate(task, false));
        assert_eq!(fixture.lease(), None, "its step goes on");
        fixture.finish(&leased, ending);
        assert_eq!(fixture.status(task), TaskStatus::Terminating);
        fixture.perform(task, StepEnding::ShutDown(None));
        assert_eq!(fixture.status(task), TaskStatus::Terminated);
    }
    let task = fixture.create("Pass");
    let leased = fixture.lease_of(task);
    fixture.end(&leased, StepEnding::Failed(StepError::new("no")), vec![terminate(task, false)]).expect("it holds");
    assert_eq!(fixture.status(task), TaskStatus::Terminating, "it has terminated itself");
}

pub fn task_is_deleted_once_its_tree_is_terminated(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create("Pass");
    let root = fixture.create_task(child_of(parent, "root", "Open"));
    let child = fixture.create_task(child_of(root, "a", "Pipe"));
    fixture.act(add_alias(child, "import"));
    fixture.act(set_state(child, "n", "1"));
    fixture.act(write(child, "in:in", &["1", "2"]));
    fixture.act(write(root, "in:any", &["1"]));
    assert_eq!(fixture.act(delete(root)), ActOutcome::Deleted(false));
    fixture.act(terminate(root, false));
    for leased in fixture.lease_many(9) {
        let is_root = leased.window.task.id == root;
        fixture.finish(&leased, if is_root { StepEnding::ShutDown(None) } else { StepEnding::Completed });
    }
    assert_eq!(fixture.status(root), TaskStatus::Terminated);
    assert_eq!(fixture.act(delete(root)), ActOutcome::Deleted(false), "its child is not terminated");
    fixture.act(terminate(child, false));
    while let Some(leased) = fixture.lease() {
        let is_shutdown = leased.call == StepCall::Shutdown;
        fixture.finish(&leased, if is_shutdown { StepEnding::ShutDown(None) } else { StepEnding::Completed });
    }
    let mut listener = fixture.listen(&["/sidejob/job"]);
    assert_eq!(fixture.act(delete(root)), ActOutcome::Deleted(true));
    assert_eq!(
        fixture.heard(&mut *listener, "/sidejob/job"),
        [r#"/sidejob/job {"deleted":true}"#, r#"/sidejob/job {"deleted":true}"#]
    );
    assert_eq!((fixture.find("2"), fixture.find("3"), fixture.find("import")), (None, None, None));
    assert_eq!(fixture.children(parent), "");
    assert_eq!(fixture.refusal(delete(root)), TaskRefusal::UnknownTask(root));
    fixture.act(add_alias(parent, "import"));
    assert_eq!(fixture.create("Pass"), id(4), "an id is never used again");
}

/// A deleted task receives no messages.
pub fn deleted_task_leaves_its_channels(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let new = super::fixture::with_inports("Pass", r#"{"in":{"channels":["/a"]}}"#);
    let task = fixture.create_task(new);
    fixture.act(terminate(task, false));
    fixture.perform(task, StepEnding::ShutDown(None));
    assert_eq!(fixture.act(delete(task)), ActOutcome::Deleted(true));
    assert_eq!(fixture.act(publish("/a", "1")), ActOutcome::Done);
    assert_eq!(fixture.find("1"), None);
}

pub fn wide_tree_is_terminated_and_deleted(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let root = fixture.create("Pass");
    let mut acts = Vec::new();
    for number in 0..10_000 {
        acts.push(TaskAct::Create(NewTask { ..child_of(root, &format!("c{number}"), "Pass") }));
    }
    fixture.commit(acts).expect("children can be created");
    fixture.act(terminate(root, true));
    let mut ended = 0;
    loop {
        let leased = fixture.lease_many(2_000);
        if leased.is_empty() {
            break;
        }
        assert!(leased.iter().all(|step| step.call == StepCall::Shutdown));
        ended += leased.len();
        fixture.finish_all(&leased, &StepEnding::ShutDown(None));
    }
    assert_eq!(ended, 10_001);
    assert_eq!(fixture.act(delete(root)), ActOutcome::Deleted(true));
    assert_eq!((fixture.find("1"), fixture.find("2"), fixture.find("10001")), (None, None, None));
}

pub fn alias_is_unique(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let (task, other) = (fixture.create("Pass"), fixture.create("Pass"));
    assert_eq!(fixture.find("import"), None);
    fixture.act(add_alias(task, "import"));
    fixture.act(add_alias(task, "another"));
    assert_eq!(fixture.act(add_alias(task, "import")), ActOutcome::Done, "it has this alias already");
    assert_eq!(fixture.find("import").map(|task| task.id), Some(task));
    let aliases: Vec<String> = fixture.window(task).aliases.iter().map(ToString::to_string).collect();
    assert_eq!(aliases, ["another", "import"]);
    let taken = TaskRefusal::AliasTaken { alias: alias("import"), task };
    assert_eq!(fixture.refusal(add_alias(other, "import")), taken);
    for (owner, name) in [(other, "import"), (task, "unknown")] {
        let unknown = TaskRefusal::UnknownAlias { alias: alias(name), task: owner };
        assert_eq!(fixture.refusal(remove_alias(owner, name)), unknown);
    }
    fixture.act(remove_alias(task, "import"));
    assert_eq!(fixture.find("import"), None);
    fixture.act(add_alias(other, "import"));
    assert_eq!(fixture.find("import").map(|task| task.id), Some(other));
}

pub fn state_fields_are_set_and_removed(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    fixture.act(set_state(task, "a", r#"{"x":[1,null]}"#));
    fixture.act(set_state(task, "b", "1"));
    fixture.act(set_state(task, "b", "2"));
    assert_eq!(fixture.state(task, "a").as_deref(), Some(r#"{"x":[1,null]}"#));
    assert_eq!((fixture.state(task, "b").as_deref(), fixture.state(task, "c")), (Some("2"), None));
    let field = |name: &str| cronhold_core::task::StateField::parse(name).expect(name);
    fixture.act(TaskAct::UnsetState { task: TaskTarget::Id(task), fields: vec![field("a"), field("unknown")] });
    assert_eq!((fixture.state(task, "a"), fixture.state(task, "b").as_deref()), (None, Some("2")));
    fixture.act(TaskAct::SetState { task: TaskTarget::Id(task), fields: Vec::new() });
    assert_eq!(fixture.window(task).state.len(), 1);
    assert_eq!(fixture.status(task), TaskStatus::Queued, "a change of the state wakes no task");
}

/// A window shows the children of a task with what they have written.
pub fn window_has_the_children(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create("Pass");
    let child = fixture.create_task(child_of(parent, "a", "Pipe"));
    fixture.create_task(NewTask { ..new_task("Pass") });
    let items = vec![item("1"), item("2")];
    fixture.act(TaskAct::Write { port: port(child, "out:out"), items, as_default: false, notify: false });
    let window = fixture.window(parent);
    assert_eq!(window.children.len(), 1);
    let seen = &window.children[0];
    assert_eq!((seen.name.as_str(), seen.task, seen.class.as_str()), ("a", child, "Pipe"));
    assert_eq!(seen.status, TaskStatus::Queued);
    let out: Vec<(&str, u64, usize)> =
        seen.outports.iter().map(|port: &PortWindow| (port.name.as_str(), port.size, port.items.len())).collect();
    assert_eq!(out, [("out", 2, 2)]);
    fixture.act(run(parent));
}

pub fn child_is_found_by_its_name(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create("Pass");
    let child = fixture.create_task(child_of(parent, "a", "Pass"));
    let found =
        |task, name: &str| block_on(fixture.store.child(task, &child_name(name))).expect("children can be read");
    assert_eq!((found(parent, "a"), found(parent, "A"), found(child, "a")), (Some(child), None, None));
    assert_eq!(found(id(9), "a"), None, "a task that does not exist has no children");
}

/// A task whose steps were lost is terminated like any other: its shutdown is performed, and repeated if it is lost.
pub fn shutdown_is_performed_after_lost_steps(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    for _ in 0..2 {
        fixture.lease_of(task);
        subject.pass(LEASE);
    }
    fixture.lease_of(task);
    fixture.act(terminate(task, false));
    for _ in 0..2 {
        subject.pass(LEASE);
        let shutdown = fixture.lease_of(task);
        assert_eq!((shutdown.call, fixture.status(task)), (StepCall::Shutdown, TaskStatus::Terminating));
    }
    subject.pass(LEASE);
    assert_eq!(fixture.lease(), None);
    assert_eq!(fixture.status(task), TaskStatus::Terminated, "a shutdown that is always lost is given up");
}

/// A step that can never be committed does not replace the shutdown of a task that is terminated meanwhile.
pub fn shutdown_is_performed_after_an_impossible_step(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pass");
    let leased = fixture.lease_of(task);
    fixture.act(terminate(task, false));
    let impossible = || vec![write(task, "in:unknown", &["1"])];
    fixture.end(&leased, StepEnding::Completed, impossible()).expect_err("a port is unknown");
    assert_eq!(fixture.status(task), TaskStatus::Terminating);
    let shutdown = fixture.lease_of(task);
    assert_eq!(shutdown.call, StepCall::Shutdown);
    fixture.end(&shutdown, StepEnding::ShutDown(None), impossible()).expect_err("a port is unknown");
    assert_eq!((fixture.status(task), fixture.lease()), (TaskStatus::Terminated, None), "it is not tried again");
}
