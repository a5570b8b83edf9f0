//! Why a unit is refused. Nothing of a refused unit takes effect.

use serde::{Deserialize, Deserializer, Serialize};

use super::TaskId;
use super::name::{ChildName, ClassName, PortName, QueueName, TaskAlias};
use super::port::PortAddress;

/// What a limit counts, such as `acts of a unit`.
pub type LimitedThing = &'static str;

/// What limits count, so that a refusal can be read again.
const LIMITED_THINGS: [LimitedThing; 10] = [
    "acts of a unit",
    "bytes of a value",
    "bytes of a unit",
    "ports",
    "channels of a port",
    "items to move",
    "bytes of items to move",
    "port writes caused by messages",
    "levels of a tree of tasks",
    "tasks below a task",
];

/// Reads what a limit counts.
fn limited_thing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LimitedThing, D::Error> {
    let text = String::deserialize(deserializer)?;
    // A newer program may count something else; the message only becomes less exact.
    Ok(LIMITED_THINGS.into_iter().find(|thing| *thing == text).unwrap_or("things"))
}

/// Why a unit is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    TooLarge {
        #[serde(deserialize_with = "limited_thing")]
        what: LimitedThing,
        found: usize,
        limit: usize,
    },
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
            // A worker sees how often its step was refused, and then does less at once.
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
