//! Steps while the store is away for a moment, or while others take what they read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use cronhold_core::task::{
    Channel, JsonText, PortDirection, PortItem, PortName, PortTarget, StepEnding, TaskAct, TaskId, TaskStatus,
};
use cronhold_schedule::Span;
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::TaskStore;
use cronhold_worker::{StepOutcome, WorkerRuntime};

use crate::samples::script;
use crate::stores::on_each_store;
use crate::unreliable::UnreliableTasks;

const PORTS: &str = r#"{"inports":{"in":{}},"outports":{"out":{}}}"#;

fn inport(task: TaskId) -> PortTarget {
    PortTarget::new(task, PortDirection::In, PortName::parse("in").expect("a name"))
}

fn task_with_items(runtime: &WorkerRuntime, count: u64) -> TaskId {
    let task = runtime.create("Script", &()).expect("a task");
    let items = (1..=count).map(|number| PortItem::new(JsonText::of_number(number))).collect();
    let write = TaskAct::Write { port: inport(task), items, as_default: false, notify: true };
    runtime.request(write).expect("a port");
    task
}

/// The second page of a port cannot be read. The step is made again, and the task does not fail.
#[test]
fn step_is_repeated_if_the_store_is_away_while_it_reads() {
    on_each_store(|store, _| {
        let store = Arc::new(UnreliableTasks::new(store));
        let runtime = script(store.clone(), PORTS, |step| {
            let numbers: Vec<u64> = step.read_all("in")?;
            step.write("out", &numbers.iter().sum::<u64>())
        });
        let task = task_with_items(&runtime, 200);
        store.reads.store(1, Ordering::SeqCst);
        let report = runtime.perform_next().expect("a step").expect("the task is ready");
        assert!(matches!(report.outcome, StepOutcome::Committed(StepEnding::Repeated(_))), "{report:?}");
        runtime.drain(3).expect("steps");
        assert_eq!(runtime.read::<u64>(task, "out").expect("a port"), Some(20_100));
    });
}

/// Items that a step would read next are taken by another client.
#[test]
fn step_is_repeated_if_its_items_are_taken() {
    on_each_store(|store, _| {
        let (calls, other) = (AtomicU32::new(0), Arc::clone(&store));
        let runtime = script(store, PORTS, move |step| {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                let pop = TaskAct::Pop { port: inport(step.task().id), count: 150, or_default: false };
                let other = WorkerRuntime::new(Arc::clone(&other), "testq").expect("a queue");
                other.request(pop).expect("items are taken");
            }
            let numbers: Vec<u64> = step.read_all("in")?;
            step.write("out", &numbers.len())
        });
        let task = task_with_items(&runtime, 200);
        runtime.drain(3).expect("no step fails");
        assert_eq!(runtime.read::<u64>(task, "out").expect("a port"), Some(50));
        assert_eq!(runtime.find(task).expect("it exists").status, TaskStatus::Completed);
    });
}

/// A step that is repeated again and again fails at some time.
#[test]
fn step_that_can_never_read_fails() {
    on_each_store(|store, _| {
        let store = Arc::new(UnreliableTasks::new(store));
        let runtime = script(store.clone(), PORTS, |step| step.read_all::<u64>("in").map(drop));
        let task = task_with_items(&runtime, 200);
        store.reads.store(u32::MAX, Ordering::SeqCst);
        assert_eq!(runtime.drain_all(99).expect("steps"), 13);
        assert_eq!(runtime.find(task).expect("it exists").status, TaskStatus::Failed);
    });
}

/// A commit is sent again while the store is away, so that the step is not lost.
#[test]
fn commit_waits_for_the_store() {
    on_each_store(|store, _| {
        let store = Arc::new(UnreliableTasks::new(store));
        let runtime = script(store.clone(), PORTS, |step| step.write("out", &1));
        let task = runtime.create("Script", &()).expect("a task");
        store.commits.store(6, Ordering::SeqCst);
        runtime.drain(1).expect("the step is committed");
        assert_eq!(runtime.read::<u64>(task, "out").expect("a port"), Some(1));
    });
}

/// A process that the store has forgotten registers again with its next heartbeat.
#[test]
fn forgotten_process_registers_again() {
    on_each_store(|store, _| {
        let store = Arc::new(UnreliableTasks::new(store));
        store.beats.store(1, Ordering::SeqCst);
        let runtime = script(store.clone(), PORTS, |_| Ok(())).with_lease(Span::from_millis(30));
        let channel = Channel::parse("/sidejob/workers/testq").expect("a channel");
        let mut listener = block_on(store.listen(vec![channel])).expect("a listener");
        let stop = runtime.stop_handle();
        thread::scope(|scope| {
            let running = scope.spawn(|| runtime.run());
            for _ in 0..2 {
                let message = block_on(listener.next()).message;
                assert!(message.as_str().starts_with(r#"{"Script":"#), "{message}");
            }
            stop.stop();
            running.join().expect("no panic").expect("it runs");
        });
    });
}
