//! The trait that workers implement, and how a step stops.

use std::error::Error;

use crate::bare::BareJobStep;
use crate::step::TaskStep;

/// Makes the steps of the tasks of one class. One value serves many tasks, on several threads at once.
///
/// A step can be repeated: a worker may be lost before the step is committed. Then nothing of it has taken effect
/// except what the worker has done outside of its store.
pub trait Worker: Send + Sync + 'static {
    /// Whether [`Worker::startup`] does something. If not, the first step is like every other one.
    fn has_startup(&self) -> bool {
        false
    }

    /// Is called before the first step of a task, and is committed by itself. It is called again if it fails.
    fn startup(&self, step: &mut TaskStep<'_>) -> StepResult {
        let _ = step;
        Ok(())
    }

    /// Makes a step. The task is completed if this returns `Ok`.
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult;

    /// Whether [`Worker::perform_job`] does something. If not, jobs of Sidekiq clients for this class stay in the queue.
    fn performs_jobs(&self) -> bool {
        false
    }

    /// Performs a job that a plain Sidekiq client has pushed for this class. If it fails, it is retried as Sidekiq does
    /// it.
    fn perform_job(&self, job: &mut BareJobStep<'_>) -> StepResult {
        let _ = job;
        Err(StepStop::Failed("the class performs only tasks".to_owned()))
    }

    /// Is called before a task is terminated. If it fails, the error is logged and the task is terminated anyway.
    fn shutdown(&self, step: &mut TaskStep<'_>) -> StepResult {
        let _ = step;
        Ok(())
    }
}

/// The result of a step, and of what a worker does in it.
pub type StepResult<T = ()> = Result<T, StepStop>;

/// Why a step stops before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepStop {
    /// It waits for input. What it has done before is committed.
    Suspended,
    /// It failed. Nothing of it takes effect.
    Failed(String),
    /// It cannot go on now, because items were taken that it would read next, or the store is away. Nothing of it takes
    /// effect, and it is repeated.
    Repeated(String),
    /// It has not begun, and the process stops. Another worker makes it at once.
    GivenBack,
}

/// So that a worker can use `?` on any error. The message has the causes of the error.
impl<E: Error> From<E> for StepStop {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(&format!(": {error}"));
            cause = error.source();
        }
        Self::Failed(message)
    }
}
