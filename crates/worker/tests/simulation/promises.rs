//! What must hold at every moment: each number that was committed is at one place, and no task waits for nothing.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_core::task::{PortDirection, StepEnding, StepId, TaskId, TaskRecord, TaskStatus, TaskUnit, UnitOrigin};
use cronhold_store::conformance::block_on;
use cronhold_store::lock_mutex;
use cronhold_store::tasks::{
    LeaseClass, PortWindow, TaskQuery, TaskReceipt, TaskStore, TaskUnitError, TaskWindow, WindowLimits,
};

use crate::stage::ActorStage;

/// The beginning of the key of a request that writes a number.
pub(crate) const WRITE_KEY: &str = "number-";
/// Everything that a task of the simulation has.
const WHOLE: WindowLimits = WindowLimits { items: 10_000, bytes: 1 << 20, children: 0 };

/// What was committed, and how much has happened.
#[derive(Debug, Default)]
pub(crate) struct TaskPromises {
    written: Mutex<BTreeSet<u64>>,
    ended: Mutex<BTreeSet<(TaskId, StepId)>>,
    pub(crate) steps: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) crashes: AtomicU64,
    pub(crate) faults: AtomicU64,
}

impl TaskPromises {
    pub(crate) fn count_crash(&self) {
        self.crashes.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn count_fault(&self) {
        self.faults.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn written(&self) -> Vec<u64> {
        lock_mutex(&self.written).iter().copied().collect()
    }

    /// Notes what a commit means for what must be there.
    pub(crate) fn note_commit(&self, unit: &TaskUnit, result: &Result<TaskReceipt, TaskUnitError>, stage: &ActorStage) {
        match (&unit.origin, result) {
            (UnitOrigin::Request { key: Some(key) }, Ok(TaskReceipt::Committed(_))) => {
                let number: Option<u64> = key.strip_prefix(WRITE_KEY).and_then(|number| number.parse().ok());
                lock_mutex(&self.written).extend(number);
            }
            (UnitOrigin::Step { task, step, ending }, Ok(TaskReceipt::Committed(_))) => {
                self.steps.fetch_add(1, Ordering::SeqCst);
                if *ending != StepEnding::Started && !lock_mutex(&self.ended).insert((*task, *step)) {
                    stage.report(format!("step {step} of task {task} has ended twice"));
                }
            }
            (UnitOrigin::Step { .. }, Err(TaskUnitError::Refused(_))) => {
                self.lost.fetch_add(1, Ordering::SeqCst);
            }
            _ => {}
        }
    }

    /// Checks what must hold between any two commits.
    pub(crate) fn check(&self, store: &dyn TaskStore, stage: &ActorStage) {
        let windows = all_windows(store);
        for TaskWindow { task, .. } in &windows {
            let waits = task.entry.is_some() || task.run_at.is_some() || task.lease.is_some();
            if task.status.is_pending() && !waits {
                stage.report(format!("task {} is {} and waits for nothing", task.id, task.status));
            }
            if task.status == TaskStatus::Running && task.lease.is_none() {
                stage.report(format!("task {} is running without a step", task.id));
            }
        }
        let places = NumberPlaces::of(&windows);
        let mut all = [places.before.clone(), places.after.clone()].concat();
        all.sort_unstable();
        let written = self.written();
        if all != written {
            stage.report(format!("items differ: {all:?} are there, {written:?} were written"));
        }
        if places.after != places.published {
            let NumberPlaces { after, published, .. } = places;
            stage.report(format!("{published:?} were published, {after:?} have arrived"));
        }
    }

    /// Checks what must hold in the end, when nothing is left to do.
    pub(crate) fn check_end(&self, store: &dyn TaskStore, stage: &ActorStage) {
        self.check(store, stage);
        for TaskWindow { task, inports, .. } in all_windows(store) {
            let TaskRecord { id, status, .. } = task;
            if matches!(status, TaskStatus::Queued | TaskStatus::Running | TaskStatus::Terminating) {
                stage.report(format!("task {id} is still {status}"));
            }
            for port in inports.iter().filter(|port| port.size > 0) {
                stage.report(format!("task {id} is {status}, and {} is left in port {}", port.size, port.name));
            }
        }
    }
}

/// Where numbers are.
struct NumberPlaces {
    /// On their way to the publication.
    before: Vec<u64>,
    /// At the sink.
    after: Vec<u64>,
    /// In out ports with a channel, which keep what they publish.
    published: Vec<u64>,
}

impl NumberPlaces {
    fn of(windows: &[TaskWindow]) -> Self {
        let (mut before, mut after, mut published) = (Vec::new(), Vec::new(), Vec::new());
        for TaskWindow { task, inports, outports, state, .. } in windows {
            let is_sink = task.class.as_str() == "Sink";
            let seen = state.iter().find(|(field, _)| field.as_str() == "seen");
            after.extend(seen.and_then(|(_, value)| value.to::<Vec<u64>>().ok()).unwrap_or_default());
            inports.iter().for_each(|port| if is_sink { &mut after } else { &mut before }.extend(numbers(port)));
            for port in outports {
                if port.channels.is_empty() { &mut before } else { &mut published }.extend(numbers(port));
            }
        }
        after.sort_unstable();
        published.sort_unstable();
        Self { before, after, published }
    }
}

fn numbers(port: &PortWindow) -> impl Iterator<Item = u64> {
    port.items.iter().map(|item| item.data.to().expect("items are numbers"))
}

/// All tasks with all that they have.
pub(crate) fn all_windows(store: &dyn TaskStore) -> Vec<TaskWindow> {
    let tasks = block_on(store.page(&TaskQuery::default(), 100)).expect("the store itself has no faults");
    let window = |task: TaskRecord| block_on(store.window(task.id, &WHOLE)).expect("it has no faults").expect("a task");
    tasks.into_iter().map(window).collect()
}

/// The classes as a lease names them.
pub(crate) fn lease_classes() -> Vec<LeaseClass> {
    let class = |(name, _): &(&str, &str)| LeaseClass {
        name: cronhold_core::task::ClassName::parse(name).expect("a name"),
        has_startup: *name == "Pump",
    };
    crate::stories::CLASSES.iter().map(class).collect()
}

/// The in port of all classes.
pub(crate) fn inport(task: TaskId) -> cronhold_core::task::PortTarget {
    let name = cronhold_core::task::PortName::parse("in").expect("a name");
    cronhold_core::task::PortTarget::new(task, PortDirection::In, name)
}
