//! Lists of tasks, queues and channels, and what survives a restart.

use cronhold_core::task::{StepEnding, StepError, TaskId, TaskStatus};
use cronhold_schedule::Span;

use super::super::block_on;
use super::TaskSubject;
use super::fixture::{TaskFixture, child_of, id, queue_name, run_at, set_state, with_inports, write};
use crate::tasks::{QueueSummary, TaskQuery};

fn page(fixture: &TaskFixture, query: &TaskQuery, limit: usize) -> Vec<TaskId> {
    let page = block_on(fixture.store.page(query, limit)).expect("pages can be read");
    page.into_iter().map(|task| task.id).collect()
}

pub fn tasks_are_listed_by_status_and_queue(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let failed = fixture.create_in(TaskStatus::Failed);
    let done = fixture.create_in(TaskStatus::Completed);
    let queued = [fixture.create("Pass"), fixture.create("Pass"), fixture.create("Pass")];
    let all = TaskQuery::default();
    assert_eq!(page(&fixture, &all, 9), [failed, done, queued[0], queued[1], queued[2]]);
    assert_eq!(page(&fixture, &TaskQuery { after: Some(done), ..all.clone() }, 2), queued[..2]);
    assert_eq!(page(&fixture, &TaskQuery { after: Some(TaskId::MAX), ..all.clone() }, 2), []);
    let of_status = |status| TaskQuery { status: Some(status), ..TaskQuery::default() };
    assert_eq!(page(&fixture, &of_status(TaskStatus::Failed), 9), [failed]);
    assert_eq!(page(&fixture, &of_status(TaskStatus::Queued), 2), queued[..2]);
    assert_eq!(page(&fixture, &TaskQuery { after: Some(queued[0]), ..of_status(TaskStatus::Queued) }, 9), queued[1..]);
    assert_eq!(page(&fixture, &of_status(TaskStatus::Running), 9), []);
    let of_queue = TaskQuery { queue: Some(queue_name()), status: Some(TaskStatus::Completed), after: None };
    assert_eq!(page(&fixture, &of_queue, 9), [done]);
    let other = cronhold_core::task::QueueName::parse("other").expect("a name");
    assert_eq!(page(&fixture, &TaskQuery { queue: Some(other), ..all }, 9), []);
}

pub fn queues_show_what_is_ready(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let summary = |ready| vec![QueueSummary { queue: queue_name(), ready }];
    let queues = || block_on(fixture.store.queues()).expect("queues can be read");
    assert_eq!(queues(), summary(0));
    let (first, later) = (fixture.create("Pass"), fixture.create("Pass"));
    fixture.create("Pipe");
    assert_eq!(queues(), summary(3));
    fixture.perform(first, StepEnding::Completed);
    fixture.perform(later, StepEnding::Completed);
    fixture.act(run_at(later, fixture.now().plus(Span::from_secs(9))));
    assert_eq!(queues(), summary(1), "a delayed task has no place in its queue");
}

pub fn children_are_listed_in_pages(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create("Pass");
    for name in ["b", "a", "d", "c"] {
        fixture.create_task(child_of(parent, name, "Pass"));
    }
    let child = |name: &str| block_on(fixture.store.child(parent, &super::fixture::child_name(name)));
    assert_eq!((child("a"), child("e")), (Ok(Some(id(3))), Ok(None)));
    let names = |after: Option<&str>, limit| {
        let after = after.map(super::fixture::child_name);
        let page = block_on(fixture.store.children(parent, after.as_ref(), limit)).expect("children can be read");
        page.into_iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        (names(None, 3).as_str(), names(Some("b"), 9).as_str(), names(Some("d"), 9).as_str()),
        ("a b c", "c d", "")
    );
}

pub fn channels_are_listed_in_pages(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/b","/a","/c"]},"x":{"channels":["/b"]}}"#));
    fixture.create_task(with_inports("Pass", r#"{"in":{"channels":["/b"]}}"#));
    let names = |after: Option<&str>, limit| {
        let after = after.map(super::fixture::channel);
        let page = block_on(fixture.store.channels(after.as_ref(), limit)).expect("channels can be read");
        page.iter().map(|found| format!("{}={}", found.channel, found.subscribers)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((names(None, 2).as_str(), names(Some("/b"), 9).as_str()), ("/a=1 /b=3", "/c=1"));
}

pub fn tasks_survive_a_restart(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let failed = fixture.create_in(TaskStatus::Failed);
    let task = fixture.create_task(with_inports("Pipe", r#"{"in":{"channels":["/a"]}}"#));
    let child = fixture.create_task(child_of(task, "a", "Pipe"));
    fixture.act(write(task, "in:in", &["1", "[]"]));
    fixture.act(set_state(task, "n", "1"));
    let held = fixture.lease_of(task);
    let before = (fixture.window(task), fixture.window(child), fixture.record(failed));
    drop(fixture);
    let fixture = TaskFixture::on(subject.reopen(), 2);
    assert_eq!((fixture.window(task), fixture.window(child), fixture.record(failed)), before);
    fixture.finish(&held, StepEnding::Failed(StepError::new("no")));
    fixture.perform(child, StepEnding::Completed);
    assert_eq!(fixture.create("Pass"), id(4), "ids count on");
    fixture.act(super::fixture::publish("/a/b", "2"));
    assert_eq!(fixture.values(task, "in:in"), "1 [] 2");
}
