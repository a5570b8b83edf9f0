//! The statuses of tasks, and the table of what changes them: every status, every cause, one match.

use std::fmt;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

/// The status of a task. *Suspended*, *completed* and *failed* differ only in what they say about its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskStatus {
    /// It will make a step.
    Queued,
    /// A worker makes a step.
    Running,
    /// It waits for input.
    Suspended,
    /// It has processed everything it has.
    Completed,
    /// Its last step failed.
    Failed,
    /// It will make its last step, which is the shutdown of its worker.
    Terminating,
    /// It has ended. It can be deleted once all of its descendants have ended too.
    Terminated,
}

/// What can change the status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatusCause {
    /// A write, a child, the task itself or a person requests a step.
    Run,
    /// A person requests a step, whatever the status.
    ForcedRun,
    /// The task has to end, or it has made too many steps in a minute.
    Terminate,
    /// A worker leases a step.
    Lease,
    /// The step has returned.
    Complete,
    /// The step waits for input.
    Suspend,
    /// The step failed.
    Fail,
    /// The shutdown of the worker has returned or failed.
    ShutDown,
    /// The step is given back: it was lost, was refused, or never began.
    GiveBack,
    /// The step was lost or refused too often.
    GiveUp,
    /// No worker has registered the class any more.
    ClassMissing,
}

impl TaskStatus {
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::Suspended,
        Self::Completed,
        Self::Failed,
        Self::Terminating,
        Self::Terminated,
    ];

    /// The status after a cause; `None` if the cause does not change it.
    ///
    /// A step that ends while its task was run again leaves it `queued`, also if the step failed or is given up: the
    /// request came during the step, and stands for a step that begins later.
    pub const fn after(self, cause: StatusCause) -> Option<Self> {
        use StatusCause as Cause;
        match (cause, self) {
            (Cause::Run, Self::Running | Self::Suspended | Self::Completed) => Some(Self::Queued),
            (Cause::ForcedRun, Self::Queued) => None,
            (Cause::ForcedRun, _) => Some(Self::Queued),
            (Cause::Terminate, Self::Terminating | Self::Terminated) => None,
            (Cause::Terminate, _) => Some(Self::Terminating),
            (Cause::Lease, Self::Queued) => Some(Self::Running),
            (Cause::Complete, Self::Running) => Some(Self::Completed),
            (Cause::Suspend, Self::Running) => Some(Self::Suspended),
            (Cause::Fail, Self::Running) => Some(Self::Failed),
            (Cause::ShutDown, Self::Terminating) => Some(Self::Terminated),
            (Cause::GiveBack, Self::Running) => Some(Self::Queued),
            (Cause::GiveUp, Self::Running) => Some(Self::Failed),
            (Cause::GiveUp, Self::Terminating) => Some(Self::Terminated),
            (Cause::ClassMissing, Self::Terminated) => None,
            (Cause::ClassMissing, _) => Some(Self::Terminated),
            _ => None,
        }
    }

    /// Whether an unforced run leads to a step.
    pub const fn is_runnable(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Suspended | Self::Completed)
    }

    /// Whether a worker has to do something for the task.
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::Queued | Self::Terminating)
    }

    /// The word that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Terminating => "terminating",
            Self::Terminated => "terminated",
        }
    }

    /// Parses the word that is stored.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or_else(|| {
            let words: Vec<&str> = Self::ALL.iter().map(|status| status.as_str()).collect();
            TextError::new(0..text.len(), format!("`{}` is not the status of a task", shortened(text)))
                .hint(format!("write one of {}", words.join(", ")))
        })
    }
}

impl StatusCause {
    pub const ALL: [Self; 11] = [
        Self::Run,
        Self::ForcedRun,
        Self::Terminate,
        Self::Lease,
        Self::Complete,
        Self::Suspend,
        Self::Fail,
        Self::ShutDown,
        Self::GiveBack,
        Self::GiveUp,
        Self::ClassMissing,
    ];
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

cronhold_schedule::stored_as_text!(TaskStatus);
