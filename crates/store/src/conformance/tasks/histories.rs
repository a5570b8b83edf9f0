//! Random histories of workers that are slow, crash, and send their units again. Each seed is one history, and every
//! store goes through the same ones.

use cronhold_core::task::{StepEnding, StepError, TaskAct, TaskId, TaskRefusal, TaskStatus, TaskTarget};

use super::TaskSubject;
use super::fixture::{LEASE, TaskFixture, child_of, new_task, port, run_at, terminate, write};
use super::races::{all_values, check_obligations};
use crate::seeded_random::SeededRandom;
use crate::tasks::{LeasedStep, StepCall, TaskReceipt};

/// Histories.
const SEEDS: u64 = 12;
/// Events of a history.
const EVENTS: usize = 150;
/// Items in the beginning.
const ITEMS: u64 = 12;

/// A unit that a worker has sent, and may send again.
#[derive(Debug, Clone)]
struct SentUnit {
    leased: LeasedStep,
    ending: StepEnding,
    acts: Vec<TaskAct>,
    is_committed: bool,
}

/// Tasks of one history, and the workers that make their steps.
struct TaskHistory<'f> {
    fixture: &'f TaskFixture,
    chance: SeededRandom,
    tasks: Vec<TaskId>,
    held: Vec<LeasedStep>,
    sent: Vec<SentUnit>,
}

/// Whatever workers do, every item is there once, and no task waits for nothing.
pub fn random_histories_keep_every_item(subject: &dyn TaskSubject) {
    let fixture = TaskFixture::of(subject);
    for seed in 0..SEEDS {
        let root = fixture.create_task(new_task("Pipe"));
        let mut tasks = vec![root];
        tasks.extend(["a", "b", "c"].map(|name| fixture.create_task(child_of(root, name, "Pipe"))));
        for item in 0..ITEMS {
            fixture.act(write(tasks[usize::try_from(item % 4).expect("small")], "in:in", &[&item.to_string()]));
        }
        let chance = SeededRandom::new(seed);
        let mut history = TaskHistory { fixture: &fixture, chance, tasks, held: Vec::new(), sent: Vec::new() };
        for _ in 0..EVENTS {
            history.happen(subject);
            check_obligations(&fixture);
        }
        history.held.clear();
        subject.pass(LEASE);
        history.drain();
        check_obligations(&fixture);
        let mut left: Vec<u64> = history.tasks.iter().flat_map(|task| all_values(&fixture, *task)).collect();
        left.sort_unstable();
        assert_eq!(left, (0..ITEMS).collect::<Vec<u64>>(), "seed {seed}: each item is there once");
    }
}

impl TaskHistory<'_> {
    fn happen(&mut self, subject: &dyn TaskSubject) {
        let task = self.tasks[self.chance.below(self.tasks.len())];
        match self.chance.below(14) {
            0 => subject.pass(LEASE),
            1..=3 => self.held.extend(self.fixture.lease_many(2)),
            4..=7 => self.end_step(),
            // A worker is lost.
            8 => drop(self.take_held()),
            9 => self.send_again(),
            10 => {
                let to = self.tasks[self.chance.below(self.tasks.len())];
                let connect = TaskAct::Connect { from: port(task, "in:in"), to: vec![port(to, "in:in")] };
                self.fixture.act(connect);
            }
            11 => drop(self.fixture.act(run_at(task, self.fixture.now().plus(LEASE)))),
            12 => drop(self.fixture.act(terminate(task, self.chance.below(2) == 0))),
            _ => {
                let run = TaskAct::Run { task: TaskTarget::Id(task), forced: true, at: None };
                self.fixture.act(run);
            }
        }
    }

    fn take_held(&mut self) -> Option<LeasedStep> {
        let index = self.chance.below(self.held.len().max(1));
        (index < self.held.len()).then(|| self.held.swap_remove(index))
    }

    /// Ends a step that sends some of its items to other tasks.
    fn end_step(&mut self) {
        let Some(leased) = self.take_held() else { return };
        let task = leased.window.task.id;
        let window = leased.window.inports.iter().find(|port| port.name.as_str() == "in").expect("it has this port");
        let count = self.chance.below(window.items.len().min(3) + 1);
        let take = TaskAct::Take { port: port(task, "in:in"), position: window.position, count: count as u64 };
        let mut acts = vec![take];
        for item in &window.items[..count] {
            let to = self.tasks[self.chance.below(self.tasks.len())];
            acts.push(write(to, "in:in", &[item.data.as_str()]));
        }
        let ending = match (leased.call, self.chance.below(5)) {
            (StepCall::Shutdown, _) => StepEnding::ShutDown(None),
            (StepCall::Perform, 0) => StepEnding::GivenBack,
            (StepCall::Perform, 1) => StepEnding::Suspended,
            (StepCall::Perform, 2) => StepEnding::Failed(StepError::new("no")),
            (StepCall::Perform, _) => StepEnding::Completed,
        };
        if matches!(ending, StepEnding::GivenBack | StepEnding::Failed(_)) {
            acts.clear();
        }
        let result = self.fixture.end(&leased, ending.clone(), acts.clone());
        match &result {
            Ok(TaskReceipt::Committed(_)) | Err(TaskRefusal::StepLost(_) | TaskRefusal::ItemsTaken(_)) => {}
            other => panic!("a unit that was not sent before ends with {other:?}"),
        }
        self.sent.push(SentUnit { leased, ending, acts, is_committed: result.is_ok() });
    }

    /// Sends a unit again, whose reply the worker may have lost.
    fn send_again(&mut self) {
        let index = self.chance.below(self.sent.len().max(1));
        let Some(SentUnit { leased, ending, acts, is_committed }) = self.sent.get(index).cloned() else { return };
        match self.fixture.end(&leased, ending, acts) {
            Ok(TaskReceipt::Repeated(_)) => assert!(is_committed, "it was not committed before"),
            Err(TaskRefusal::StepLost(_)) => {}
            other => panic!("a unit that is sent again ends with {other:?}"),
        }
    }

    /// Makes all steps that are left.
    fn drain(&mut self) {
        while let Some(leased) = self.fixture.lease() {
            let is_shutdown = leased.call == StepCall::Shutdown;
            self.fixture.finish(&leased, if is_shutdown { StepEnding::ShutDown(None) } else { StepEnding::Completed });
        }
        for task in &self.tasks {
            let status = self.fixture.status(*task);
            let record = self.fixture.record(*task);
            assert!(record.run_at.is_some() || !status.is_pending(), "nothing is left to do: {record:?}");
            assert_ne!(status, TaskStatus::Running);
        }
    }
}
