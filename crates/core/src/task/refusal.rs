//! Why a unit is refused. Nothing of a refused unit takes effect.

use super::TaskId;
use super::name::{ChildName, ClassName, PortName, QueueName, TaskAlias};
use super::port::PortAddress;

/// Why a unit is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefusal {
    /// The step does not hold its task: its lease expired, or its end was committed before.
    #[error("step of task {0} has lost its lease")]
    StepLost(TaskId),
    #[error("task {0} does not exist")]
    UnknownTask(TaskId),
    /// An act refers to a task that the unit has not created before it.
    #[error("the unit creates no task with index {0} before it is used")]
    UnknownNewTask(usize),
    #[error("class `{class}` is not registered for queue `{queue}` (start a worker that registers it)")]
    UnknownClass { queue: QueueName, class: ClassName },
    #[error("port {0} does not exist (add it to the ports of the task or of its class)")]
    UnknownPort(PortAddress),
    /// Items that the step has read are not there any more.
    #[error("items that were read from port {0} were taken meanwhile")]
    ItemsTaken(PortAddress),
    #[error("task {parent} has a child named `{name}` already")]
    ChildNameTaken { parent: TaskId, name: ChildName },
    #[error("task {child} has a parent already, task {parent}")]
    HasParent { child: TaskId, parent: TaskId },
    /// The adopted task is the parent itself or above it.
    #[error("task {child} cannot be a child of task {parent}, which is the same task or below it")]
    TreeCycle { parent: TaskId, child: TaskId },
    #[error("task {0} has no such child")]
    UnknownChild(TaskId),
    #[error("`{alias}` is an alias of task {task} already")]
    AliasTaken { alias: TaskAlias, task: TaskId },
    #[error("`{alias}` is not an alias of task {task}")]
    UnknownAlias { alias: TaskAlias, task: TaskId },
    /// The template `*` is used as a port.
    #[error("`{0}` is the template of ports, not a port")]
    TemplatePort(PortName),
    #[error("too many {what}: {found}, the limit is {limit}")]
    TooLarge { what: &'static str, found: usize, limit: usize },
    #[error("{0}")]
    Invalid(String),
}

impl TaskRefusal {
    /// Whether a step that was refused can succeed if it is repeated: it has seen something that others have changed.
    pub const fn may_pass_later(&self) -> bool {
        match self {
            Self::UnknownTask(_)
            | Self::ItemsTaken(_)
            | Self::ChildNameTaken { .. }
            | Self::HasParent { .. }
            | Self::TreeCycle { .. }
            | Self::UnknownChild(_)
            | Self::AliasTaken { .. }
            | Self::UnknownAlias { .. }
            // A worker that is told how often its step was refused does less at once.
            | Self::TooLarge { .. } => true,
            Self::StepLost(_)
            | Self::UnknownNewTask(_)
            | Self::UnknownClass { .. }
            | Self::UnknownPort(_)
            | Self::TemplatePort(_)
            | Self::Invalid(_) => false,
        }
    }
}
