//! Many workers and writers at once: no wake-up and no item is lost, and ports are linearizable.

use std::sync::atomic::{AtomicUsize, Ordering};

use cronhold_core::task::{ActOutcome, StepEnding, TaskAct, TaskId, TaskRecord, TaskRefusal, TaskStatus, TaskTarget};
use cronhold_schedule::Span;

use super::super::block_on;
use super::super::history::{EventOrder, assert_linear};
use super::super::linear::{HistoryEvent, SequentialModel};
use super::super::writers::at_once;
use super::TaskSubject;
use super::fixture::{LEASE, TaskFixture, address, id, item, port, with_inports, write};
use crate::seeded_random::SeededRandom;
use crate::tasks::{ChildWindow, LeasedStep, StepCall, TaskQuery, TaskReceipt};

/// Threads of each kind.
const WORKERS: u64 = 4;
/// Tasks that send items to each other.
const TASKS: u64 = 6;
/// Items in the beginning.
const ITEMS: u64 = 60;
/// Steps after which workers stop.
const STEPS: usize = 600;

/// A request to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortCall {
    Write(u64),
    Read,
}

/// A port as the values in it.
#[derive(Debug)]
pub(super) struct PortModel;

impl SequentialModel for PortModel {
    type Call = PortCall;
    type Answer = Option<u64>;
    type State = Vec<u64>;

    fn start(&self) -> Vec<u64> {
        Vec::new()
    }

    fn step(&self, state: &Vec<u64>, call: &PortCall, answer: &Option<u64>) -> Option<Vec<u64>> {
        match call {
            PortCall::Write(value) => Some(state.iter().copied().chain([*value]).collect()),
            PortCall::Read if state.first().copied() == *answer => Some(state.iter().skip(1).copied().collect()),
            PortCall::Read => None,
        }
    }
}

/// Items are read once, in the order in which they were written.
pub fn ports_are_linearizable(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let tasks = [fixture.create("Pipe"), fixture.create("Pipe")];
    let order = EventOrder::default();
    let workers: Vec<(u64, TaskFixture)> =
        (1..=WORKERS).map(|number| (number, TaskFixture::on(subject.store(), number))).collect();
    let notes = at_once(workers, |(number, fixture)| {
        let mut chance = SeededRandom::new(number);
        let mut notes = Vec::new();
        for round in 0..60 {
            let one = chance.below(tasks.len());
            let value = number * 1_000 + round;
            let call = if chance.below(2) == 0 { PortCall::Write(value) } else { PortCall::Read };
            let (began, ended, answer) = order.time(|| match call {
                PortCall::Write(value) => {
                    fixture.act(write(tasks[one], "in:in", &[&value.to_string()]));
                    None
                }
                PortCall::Read => fixture.read(tasks[one], "in:in").map(|text| text.parse().expect("a number")),
            });
            notes.push((one, HistoryEvent { began, ended, call, answer }));
        }
        notes
    });
    assert_linear(&PortModel, notes);
}

/// Steps move items between tasks. Some are abandoned, some are committed twice, and some are overtaken or delayed:
/// every item that was there in the beginning is there in the end, once.
pub fn items_are_conserved(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    for _ in 0..TASKS {
        fixture.create("Pipe");
    }
    for value in 0..ITEMS {
        fixture.act(write(id(value % TASKS + 1), "in:in", &[&value.to_string()]));
    }
    let steps = AtomicUsize::new(0);
    let workers: Vec<(u64, TaskFixture)> =
        (2..WORKERS + 2).map(|number| (number, TaskFixture::on(subject.store(), number))).collect();
    at_once(workers, |(number, fixture)| {
        let mut chance = SeededRandom::new(number);
        while steps.fetch_add(1, Ordering::SeqCst) < STEPS {
            match chance.below(12) {
                0 => subject.pass(LEASE),
                1 => steal(&fixture, &mut chance),
                2 => drop(fixture.act(super::fixture::run(id(1 + chance.below(6) as u64)))),
                3 => {
                    let soon = fixture.now().plus(Span::from_secs(30));
                    drop(fixture.act(super::fixture::run_at(id(1 + chance.below(6) as u64), soon)));
                }
                _ => {}
            }
            for leased in fixture.lease_many(2) {
                make_step(&fixture, &leased, &mut chance);
            }
        }
    });
    check_obligations(&fixture);
    let mut left: Vec<u64> = (1..=TASKS).flat_map(|task| all_values(&fixture, id(task))).collect();
    left.sort_unstable();
    assert_eq!(left, (0..ITEMS).collect::<Vec<u64>>(), "each item is there once");
}

/// Moves an item from outside of any step: reads and writes it in one request.
fn steal(fixture: &TaskFixture, chance: &mut SeededRandom) {
    let (from, to) = (id(1 + chance.below(6) as u64), id(1 + chance.below(6) as u64));
    let act = TaskAct::Connect { from: port(from, "in:in"), to: vec![port(to, "in:in")] };
    assert!(matches!(fixture.act(act), ActOutcome::Items(_)));
}

/// A step that sends some of its items to other tasks.
fn make_step(fixture: &TaskFixture, leased: &LeasedStep, chance: &mut SeededRandom) {
    let task = leased.window.task.id;
    let window = leased.window.inports.iter().find(|port| port.name.as_str() == "in").expect("it has this port");
    let count = chance.below(window.items.len().min(4) + 1);
    let mut acts = vec![TaskAct::Take { port: port(task, "in:in"), position: window.position, count: count as u64 }];
    for moved in &window.items[..count] {
        let to = id(1 + chance.below(6) as u64);
        acts.push(write(to, "in:in", &[moved.data.as_str()]));
    }
    let ending = if chance.below(2) == 0 { StepEnding::Completed } else { StepEnding::Suspended };
    match chance.below(10) {
        // The worker is lost.
        0 => {}
        // The reply is lost, and the unit is sent again.
        1 => {
            let first = fixture.end(leased, ending.clone(), acts.clone());
            let second = fixture.end(leased, ending, acts);
            if first.is_ok() {
                // Another worker may have ended the next step of the task meanwhile.
                let is_unchanged = matches!(second, Ok(TaskReceipt::Repeated(_)) | Err(TaskRefusal::StepLost(_)));
                assert!(is_unchanged, "{second:?}");
            }
        }
        2 => drop(fixture.end(leased, StepEnding::GivenBack, Vec::new())),
        _ => match fixture.end(leased, ending, acts) {
            Ok(_) | Err(TaskRefusal::StepLost(_) | TaskRefusal::ItemsTaken(_)) => {}
            Err(other) => panic!("nothing else is in the way: {other}"),
        },
    }
}

pub(super) fn all_values(fixture: &TaskFixture, task: TaskId) -> Vec<u64> {
    let limits = crate::tasks::WindowLimits::ITEMS;
    let found = block_on(fixture.store.items(&address(task, "in:in"), 0, &limits));
    let window = found.expect("items can be read").expect("the port exists");
    assert_eq!(window.size, window.items.len() as u64);
    window.items.iter().map(|item| item.data.to().expect("a number")).collect()
}

/// Every task that has something to do is found by a worker or has a time.
pub(super) fn check_obligations(fixture: &TaskFixture) {
    let tasks = block_on(fixture.store.page(&TaskQuery::default(), 10_000)).expect("tasks can be read");
    for task in tasks {
        let is_obliged = task.lease.is_some() || task.entry.is_some() || task.run_at.is_some();
        assert_eq!(task.status == TaskStatus::Running, task.lease.is_some() && !task.status.is_pending(), "{task:?}");
        assert!(!task.status.is_pending() || is_obliged, "no worker would ever make a step of {task:?}");
        assert!(
            task.status.is_pending() || task.entry.is_none(),
            "an entry of a task that waits for nothing: {task:?}"
        );
    }
}

/// A counter that many writers increment through a port, and whose task ends only between their writes.
pub fn no_wake_up_is_lost(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let task = fixture.create("Pipe");
    let writers: Vec<(bool, TaskFixture)> =
        (2..6).map(|number| (number % 2 == 0, TaskFixture::on(subject.store(), number))).collect();
    let written = AtomicUsize::new(0);
    at_once(writers, |(is_writer, fixture)| {
        if is_writer {
            for _ in 0..200 {
                fixture.act(write(task, "in:in", &["1"]));
                written.fetch_add(1, Ordering::SeqCst);
            }
            return;
        }
        // A worker that ends as soon as everything is written leaves the rest to the check below.
        while written.load(Ordering::SeqCst) < 400 {
            fixture.lease_many(1).iter().for_each(|leased| add_up(&fixture, leased));
        }
    });
    check_obligations(&fixture);
    while let Some(leased) = fixture.lease() {
        add_up(&fixture, &leased);
    }
    assert_eq!(fixture.state(task, "sum").as_deref(), Some("400"), "all writes were seen by a step");
    assert_eq!(fixture.status(task), TaskStatus::Completed);
}

/// A step that adds all items to a field of the state.
fn add_up(fixture: &TaskFixture, leased: &LeasedStep) {
    let task = leased.window.task.id;
    let window = leased.window.inports.iter().find(|port| port.name.as_str() == "in").expect("it has this port");
    let before = leased.window.state.iter().find(|(field, _)| field.as_str() == "sum");
    let before: u64 = before.map_or(0, |(_, value)| value.to().expect("a number"));
    let count = window.items.len() as u64;
    let mut acts = vec![
        TaskAct::Take { port: port(task, "in:in"), position: window.position, count },
        super::fixture::set_state(task, "sum", &(before + count).to_string()),
    ];
    if window.size > count {
        acts.push(super::fixture::run(task));
    }
    fixture.end(leased, StepEnding::Completed, acts).expect("no other client takes items");
}

/// Writers and steps of many children wake one parent.
pub fn busy_parent_sees_all_children(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create("Pass");
    for number in 0..40 {
        fixture.create_task(super::fixture::child_of(parent, &format!("c{number}"), "Pipe"));
    }
    let workers: Vec<TaskFixture> = (2..6).map(|number| TaskFixture::on(subject.store(), number)).collect();
    let (done, seen) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let make_step = |fixture: &TaskFixture, leased: &LeasedStep| {
        let task = leased.window.task.id;
        if task == parent {
            let is_done = |child: &&ChildWindow| child.status == TaskStatus::Completed && child.outports[0].size == 1;
            seen.fetch_max(leased.window.children.iter().filter(is_done).count(), Ordering::SeqCst);
            return fixture.finish(leased, StepEnding::Suspended);
        }
        let act =
            TaskAct::Write { port: port(task, "out:out"), items: vec![item("1")], as_default: false, notify: true };
        fixture.end(leased, StepEnding::Completed, vec![act]).expect("it holds its task");
        done.fetch_add(1, Ordering::SeqCst);
    };
    at_once(workers, |fixture| {
        while done.load(Ordering::SeqCst) < 40 {
            fixture.lease_many(3).iter().for_each(|leased| make_step(&fixture, leased));
        }
    });
    check_obligations(&fixture);
    while let Some(leased) = fixture.lease() {
        make_step(&fixture, &leased);
    }
    assert_eq!(seen.load(Ordering::SeqCst), 40, "the last step of the parent sees what the last child has done");
}

/// Many steps create children of the same names and take the same aliases: one of them wins.
pub fn names_have_one_owner(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let parent = fixture.create_task(with_inports("Pass", "{}"));
    let workers: Vec<TaskFixture> = (2..6).map(|number| TaskFixture::on(subject.store(), number)).collect();
    let created = at_once(workers, |fixture| {
        let mut created = 0;
        for number in 0..50 {
            let new = super::fixture::child_of(parent, &format!("c{number}"), "Pass");
            let alias = super::fixture::alias(&format!("a{number}"));
            let alias = TaskAct::AddAlias { task: TaskTarget::New(0), alias };
            match fixture.commit(vec![TaskAct::Create(new), alias]) {
                Ok(_) => created += 1,
                Err(TaskRefusal::ChildNameTaken { .. }) => {}
                Err(other) => panic!("nothing else is in the way: {other}"),
            }
        }
        created
    });
    assert_eq!(created.iter().sum::<usize>(), 50);
    assert_eq!(fixture.find("51").map(|task| task.id), Some(id(51)));
    assert_eq!(fixture.find("52"), None, "refused requests use no ids");
}

/// Trees grow, end and are deleted at the same time: each is deleted as a whole, and none is left that cannot be.
pub fn trees_are_deleted_as_a_whole(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    let workers: Vec<(u64, TaskFixture)> =
        (2..WORKERS + 2).map(|number| (number, TaskFixture::on(subject.store(), number))).collect();
    at_once(workers, |(number, fixture)| {
        let mut chance = SeededRandom::new(number);
        for round in 0..40 {
            let tasks = all_tasks(&fixture);
            let act = match tasks.get(chance.below(tasks.len().max(1))).map(|task| task.id) {
                None => TaskAct::Create(super::fixture::new_task("Pipe")),
                Some(task) => match chance.below(6) {
                    0 => TaskAct::Create(super::fixture::new_task("Pipe")),
                    1 | 2 => TaskAct::Create(super::fixture::child_of(task, &format!("c{number}-{round}"), "Pipe")),
                    3 => super::fixture::terminate(task, true),
                    4 => TaskAct::Delete { task: TaskTarget::Id(task) },
                    _ => write(task, "in:in", &["1"]),
                },
            };
            let result = fixture.commit(vec![act]);
            assert!(matches!(result, Ok(_) | Err(TaskRefusal::UnknownTask(_))), "{result:?}");
            fixture.lease_many(2).iter().for_each(|leased| end_as_called(&fixture, leased));
        }
    });
    check_obligations(&fixture);
    for task in all_tasks(&fixture) {
        if let Some((parent, name)) = &task.parent {
            let child = block_on(fixture.store.child(*parent, name)).expect("children can be read");
            assert_eq!(
                (fixture.record(*parent).id, child),
                (*parent, Some(task.id)),
                "no part of a tree is left alone"
            );
        }
    }
    for root in all_tasks(&fixture).into_iter().filter(|task| task.parent.is_none()) {
        fixture.act(super::fixture::terminate(root.id, true));
        while let Some(leased) = fixture.lease() {
            end_as_called(&fixture, &leased);
        }
        assert_eq!(fixture.act(TaskAct::Delete { task: TaskTarget::Id(root.id) }), ActOutcome::Deleted(true));
    }
    assert_eq!(all_tasks(&fixture), []);
}

fn all_tasks(fixture: &TaskFixture) -> Vec<TaskRecord> {
    block_on(fixture.store.page(&TaskQuery::default(), 1_000)).expect("tasks can be read")
}

/// Ends a step as a worker without effects does. Its task may have been deleted meanwhile.
fn end_as_called(fixture: &TaskFixture, leased: &LeasedStep) {
    let ending = match leased.call {
        StepCall::Perform => StepEnding::Completed,
        StepCall::Shutdown => StepEnding::ShutDown(None),
    };
    let result = fixture.end(leased, ending, Vec::new());
    assert!(matches!(result, Ok(_) | Err(TaskRefusal::StepLost(_))), "{result:?}");
}
