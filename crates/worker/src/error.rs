//! Why a worker cannot be registered, or a request about tasks fails.

use cronhold_core::task::{TaskId, TaskRefusal};
use cronhold_schedule::TextError;
use cronhold_store::Fault;
use cronhold_store::tasks::TaskUnitError;

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A name, a configuration or a value is invalid.
    #[error("{what}: {error}")]
    Invalid { what: String, error: TextError },
    /// The store refuses a request.
    #[error("the request is refused: {0}")]
    Refused(#[from] TaskRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Fault),
    /// A step failed, and the caller wants to know.
    #[error("task {task} failed: {message}")]
    StepFailed { task: TaskId, message: String },
    /// More steps were made than the caller allows.
    #[error("tasks are still ready after {0} steps (a task may run itself again and again)")]
    TooManySteps(usize),
    /// An executable cannot be used.
    #[error("{0}")]
    Executable(String),
    /// The system has no random bits or no thread.
    #[error("the system failed: {0}")]
    System(String),
}

impl WorkerError {
    pub(crate) fn invalid(what: impl Into<String>) -> impl FnOnce(TextError) -> Self {
        let what = what.into();
        |error| Self::Invalid { what, error }
    }
}

impl From<TaskUnitError> for WorkerError {
    fn from(error: TaskUnitError) -> Self {
        match error {
            TaskUnitError::Refused(refusal) => Self::Refused(refusal),
            TaskUnitError::Fault(fault) => Self::Store(fault),
        }
    }
}
