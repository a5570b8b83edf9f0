//! The program `task` with all templates resolved: a task that a run creates, or a value for a task that exists.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::task::{ClassName, JsonText, PortName, QueueName, TaskAlias, TaskKey};

/// What a run does with tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedTask {
    /// Creates a task.
    Queue {
        queue: QueueName,
        class: ClassName,
        /// Its args in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<JsonText>,
        /// Values for its in ports.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        inports: BTreeMap<PortName, JsonText>,
        /// A name of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alias: Option<TaskAlias>,
        /// Whether the run ends with the task, rather than when the task is created.
        #[serde(default)]
        wait: bool,
    },
    /// Writes a value to an in port.
    Write {
        /// Id or alias of the task.
        to: String,
        port: PortName,
        data: JsonText,
    },
}

impl ResolvedTask {
    /// The task that gets a value; `None` if a task is created, or the text is neither an id nor an alias.
    pub fn receiver(&self) -> Option<TaskKey> {
        match self {
            Self::Queue { .. } => None,
            Self::Write { to, .. } => TaskKey::parse(to).ok(),
        }
    }

    /// The program on one line, for display.
    pub fn text(&self) -> String {
        match self {
            Self::Queue { queue, class, .. } => format!("task: {class} on {queue}"),
            Self::Write { to, port, .. } => format!("task: write to {port} of {to}"),
        }
    }
}
