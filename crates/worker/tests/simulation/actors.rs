//! The processes: workers, which lease steps, make them, send heartbeats and crash, and clients, which write numbers and
//! disturb.

use std::time::Duration;

use cronhold_core::task::{
    JsonText, PortItem, QueueName, StepEnding, StepId, TaskAct, TaskId, TaskStatus, TaskTarget, TaskUnit,
};
use cronhold_schedule::Span;
use cronhold_store::conformance::block_on;
use cronhold_store::tasks::{
    LeaseRequest, LeasedStep, ProcessHeartbeat, ProcessId, TaskQuery, TaskStore, TaskUnitError, WindowLimits,
};
use cronhold_worker::perform_step_with;

use crate::faulty::FaultyTasks;
use crate::promises::{WRITE_KEY, inport, lease_classes};
use crate::stories::{TroubleFlag, worker_of};

/// How long steps are held.
pub(crate) const LEASE: Span = Span::from_secs(60);
/// A small part of a port, so that steps have to read on.
const SMALL: WindowLimits = WindowLimits { items: 2, bytes: 1_000, children: 1 };

pub(crate) fn queue() -> QueueName {
    QueueName::parse("sim").expect("a name")
}

/// One life of a worker process, until it crashes or the play is over.
pub(crate) fn live_as_worker(store: &FaultyTasks, trouble: &TroubleFlag) {
    let mut held: Vec<LeasedStep> = Vec::new();
    while !store.has_crashed() && !store.stage.is_over() {
        match store.stage.below(8) {
            0..=2 if held.len() < 3 => held.extend(lease(store, 2).unwrap_or_default()),
            3 => {
                let held: Vec<(TaskId, StepId)> = held.iter().map(|step| (step.window.task.id, step.step)).collect();
                let process = ProcessId::new("worker");
                drop(block_on(store.heartbeat(ProcessHeartbeat { process, held, is_quiet: false, lease: LEASE })));
            }
            4 if store.stage.once_in(4) => {
                let Some(step) = held.pop() else { continue };
                let unit = TaskUnit::step(step.window.task.id, step.step, StepEnding::GivenBack, Vec::new());
                block_on(store.commit(vec![unit]));
            }
            _ if held.is_empty() => store.stage.interrupt(store.actor),
            _ => perform(store, held.swap_remove(store.stage.below(held.len())), trouble),
        }
    }
}

pub(crate) fn lease(store: &FaultyTasks, count: usize) -> Option<Vec<LeasedStep>> {
    let steps = (0..count).map(|_| StepId::from_random(store.stage.random_bits())).collect();
    let request = LeaseRequest { queue: queue(), classes: lease_classes(), steps, lease: LEASE, limits: SMALL };
    block_on(store.lease(request)).ok()
}

/// Makes a step by the code of real workers. Its pauses pass in virtual time.
fn perform(store: &FaultyTasks, leased: LeasedStep, trouble: &TroubleFlag) {
    let worker = worker_of(leased.window.task.class.as_str(), trouble);
    let pause = |pause: Duration| {
        store.stage.pass(Span::from_micros(u64::try_from(pause.as_micros()).unwrap_or(0)));
        store.stage.interrupt(store.actor);
    };
    // A step that could not be committed is repeated when its lease has expired.
    drop(perform_step_with(store, &*worker, leased, &pause));
}

/// Writes numbers, each until it is confirmed, and disturbs in between.
pub(crate) fn live_as_client(store: &FaultyTasks, numbers: std::ops::Range<u64>) {
    for number in numbers {
        if store.stage.is_over() {
            return;
        }
        let task = if store.stage.below(2) == 0 { TaskId::FIRST } else { TaskId::new(2).expect("an id") };
        let items = vec![PortItem::new(JsonText::of_number(number))];
        let write = TaskAct::Write { port: inport(task), items, as_default: false, notify: true };
        let unit = TaskUnit::request(vec![write]).once(&format!("{WRITE_KEY}{number}"));
        while let Some(Err(TaskUnitError::Fault(_))) = block_on(store.commit(vec![unit.clone()])).pop() {}
        (0..store.stage.below(4)).for_each(|_| disturb(store));
    }
    while !store.stage.is_over() {
        disturb(store);
    }
}

/// Something that people and time do.
fn disturb(store: &FaultyTasks) {
    let Ok(tasks) = block_on(store.page(&TaskQuery::default(), 100)) else { return };
    let task = &tasks[store.stage.below(tasks.len())];
    let target = TaskTarget::Id(task.id);
    let act = match store.stage.below(12) {
        0 => {
            let span = if store.stage.once_in(4) { LEASE } else { Span::from_secs(7) };
            store.stage.trace(|| format!("{span} passes"));
            store.stage.pass(span);
            return store.stage.interrupt(store.actor);
        }
        1 => TaskAct::Terminate { task: target, recursive: false },
        2 => TaskAct::Run { task: target, forced: false, at: Some(store.stage.now().plus(Span::from_secs(20))) },
        3 => TaskAct::RunParent { task: target, forced: false, at: None },
        4 => TaskAct::Connect { from: inport(task.id), to: vec![inport(task.id)] },
        5 => TaskAct::Connect { from: inport(TaskId::FIRST), to: vec![inport(TaskId::new(2).expect("an id"))] },
        _ if matches!(task.status, TaskStatus::Failed | TaskStatus::Terminated) => {
            TaskAct::Run { task: target, forced: true, at: None }
        }
        _ => return store.stage.interrupt(store.actor),
    };
    block_on(store.commit(vec![TaskUnit::request(vec![act])]));
}
