//! Makes one step: calls the worker, and commits what it has done.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use cronhold_core::task::{StepEnding, StepError, TaskAct, TaskId, TaskRefusal, TaskUnit};
use cronhold_store::Fault;
use cronhold_store::tasks::{LeasedStep, StepCall, TaskReceipt, TaskStore, TaskUnitError, TaskWindow, WindowLimits};

use crate::block_on::block_on;
use crate::error::WorkerError;
use crate::step::{StepPlace, TaskStep};
use crate::worker::{StepResult, StepStop, Worker};

/// The first pause after the store could not take a unit or its outcome is unknown. Each further one is twice as long.
const COMMIT_PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest of these pauses.
const COMMIT_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long a unit is sent again. Heartbeats hold the step meanwhile if they reach the store.
const COMMIT_PAUSES_MAX: Duration = Duration::from_secs(60);

/// What a step has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepReport {
    pub task: TaskId,
    pub outcome: StepOutcome,
}

/// What a step has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepOutcome {
    /// It is committed.
    Committed(StepEnding),
    /// It was refused, and the store repeats it or has let it fail.
    Refused(TaskRefusal),
    /// Another worker makes it, because this one has lost its lease.
    Lost,
}

/// Makes a step that was leased.
pub fn perform_step(store: &dyn TaskStore, worker: &dyn Worker, leased: LeasedStep) -> Result<StepReport, WorkerError> {
    perform_step_with(store, worker, leased, &wait)
}

/// Makes a step that was leased, and calls `pause` before a unit is sent again.
pub fn perform_step_with(
    store: &dyn TaskStore,
    worker: &dyn Worker,
    leased: LeasedStep,
    pause: &dyn Fn(Duration),
) -> Result<StepReport, WorkerError> {
    let LeasedStep { step, call, is_first, window } = leased;
    let task = window.task.id;
    let performer = StepPerformer { store, worker, task, place: StepPlace { id: step, is_first }, pause };
    let outcome = match call {
        StepCall::Shutdown => performer.shut_down(window)?,
        StepCall::Perform if is_first && worker.has_startup() => performer.start_and_perform(window)?,
        StepCall::Perform => performer.perform(window)?,
    };
    Ok(StepReport { task, outcome })
}

/// Waits before a unit is sent again.
#[expect(clippy::disallowed_methods, reason = "a store that is away has no event to wait for")]
fn wait(pause: Duration) {
    thread::sleep(pause);
}

struct StepPerformer<'s> {
    store: &'s dyn TaskStore,
    worker: &'s dyn Worker,
    task: TaskId,
    place: StepPlace,
    pause: &'s dyn Fn(Duration),
}

impl StepPerformer<'_> {
    /// Makes the startup, which is committed by itself, and then the step.
    fn start_and_perform(&self, window: TaskWindow) -> Result<StepOutcome, WorkerError> {
        let (result, acts) = self.call(window, |worker, step| worker.startup(step))?;
        match result {
            Ok(()) => {}
            Err(stop) => return self.stop(stop, acts),
        }
        match self.commit(StepEnding::Started, acts)? {
            StepOutcome::Committed(_) => {}
            other => return Ok(other),
        }
        match block_on(self.store.window(self.task, &WindowLimits::STEP)) {
            Ok(Some(window)) => self.perform(window),
            Ok(None) => Ok(StepOutcome::Lost),
            Err(fault) if fault.is_transient() => self.repeat(fault.to_string()),
            Err(fault) => Err(fault.into()),
        }
    }

    fn perform(&self, window: TaskWindow) -> Result<StepOutcome, WorkerError> {
        let (result, acts) = self.call(window, |worker, step| worker.perform(step))?;
        match result {
            Ok(()) => self.commit(StepEnding::Completed, acts),
            Err(stop) => self.stop(stop, acts),
        }
    }

    fn stop(&self, stop: StepStop, acts: Vec<TaskAct>) -> Result<StepOutcome, WorkerError> {
        match stop {
            StepStop::Suspended => self.commit(StepEnding::Suspended, acts),
            StepStop::Failed(message) => self.commit(StepEnding::Failed(StepError::new(message)), Vec::new()),
            StepStop::Repeated(message) => self.repeat(message),
            StepStop::GivenBack => self.commit(StepEnding::GivenBack, Vec::new()),
        }
    }

    fn shut_down(&self, window: TaskWindow) -> Result<StepOutcome, WorkerError> {
        let (result, acts) = self.call(window, |worker, step| worker.shutdown(step))?;
        let (error, acts) = match result {
            Ok(()) | Err(StepStop::Suspended) => (None, acts),
            Err(StepStop::Failed(message)) => (Some(StepError::new(message)), Vec::new()),
            Err(StepStop::Repeated(message)) => return self.repeat(message),
            Err(StepStop::GivenBack) => return self.commit(StepEnding::GivenBack, Vec::new()),
        };
        self.commit(StepEnding::ShutDown(error), acts)
    }

    /// Gives the step back to the store, which repeats it.
    fn repeat(&self, message: String) -> Result<StepOutcome, WorkerError> {
        self.commit(StepEnding::Repeated(StepError::new(message)), Vec::new())
    }

    /// Calls the worker. A panic is a failure of the step, because other tasks go on.
    fn call(
        &self,
        window: TaskWindow,
        work: impl FnOnce(&dyn Worker, &mut TaskStep<'_>) -> StepResult,
    ) -> Result<(StepResult, Vec<TaskAct>), WorkerError> {
        let now = match block_on(self.store.time()) {
            Ok(now) => now,
            Err(fault) if fault.is_transient() => {
                return Ok((Err(StepStop::Repeated(fault.to_string())), Vec::new()));
            }
            Err(fault) => return Err(fault.into()),
        };
        let mut step = TaskStep::new(self.store, self.place, window, now);
        let result = catch_unwind(AssertUnwindSafe(|| work(self.worker, &mut step)));
        let result = result.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(StepStop::Failed(format!("the worker panicked: {text}")))
        });
        Ok((result, step.into_acts()))
    }

    /// Commits the end of the step. The unit can be sent again, because it takes effect once.
    fn commit(&self, ending: StepEnding, acts: Vec<TaskAct>) -> Result<StepOutcome, WorkerError> {
        let unit = TaskUnit::step(self.task, self.place.id, ending.clone(), acts);
        let (mut pause, mut paused) = (COMMIT_PAUSE_MIN, Duration::ZERO);
        loop {
            let result = block_on(self.store.commit(vec![unit.clone()])).pop();
            match result {
                Some(Ok(TaskReceipt::Committed(_) | TaskReceipt::Repeated(_))) => {
                    return Ok(StepOutcome::Committed(ending));
                }
                Some(Err(TaskUnitError::Refused(TaskRefusal::StepLost(_)))) => return Ok(StepOutcome::Lost),
                Some(Err(TaskUnitError::Refused(refusal))) => return Ok(StepOutcome::Refused(refusal)),
                Some(Err(TaskUnitError::Fault(fault))) => {
                    if !fault.is_transient() || paused >= COMMIT_PAUSES_MAX {
                        return Err(fault.into());
                    }
                    (self.pause)(pause);
                    paused += pause;
                    pause = (2 * pause).min(COMMIT_PAUSE_MAX);
                }
                None => return Err(Fault::Permanent("the store did not reply to a unit".to_owned()).into()),
            }
        }
    }
}
