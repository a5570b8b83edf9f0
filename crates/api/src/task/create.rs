//! The creation of a task.

use std::collections::BTreeMap;
use std::fmt;

use cronhold_core::task::JsonText;
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::TaskPortOptions;

/// A task that is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBody {
    /// Queue.
    #[schema(example = "core")]
    pub queue: String,
    /// Class, which must be registered for the queue.
    #[schema(example = "Sum")]
    pub class: String,
    /// Args.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub args: Option<Vec<JsonText>>,
    /// Parent: its id or an alias. Requires `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskReference>,
    /// Name among the children of the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When its first step is due; default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Instant>,
    /// An alias, which must not be in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Name of its creator; default: the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// In ports by name, beside those of the class. `*` is a template of ports that are created when they are first
    /// used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inports: BTreeMap<String, TaskPortOptions>,
    /// Out ports by name, beside those of the class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outports: BTreeMap<String, TaskPortOptions>,
    /// Values that are written to in ports, in their order.
    #[serde(default, rename = "in", skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Vec<Value>>)]
    pub input: BTreeMap<String, Vec<JsonText>>,
}

/// A task that is named by its id or an alias.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum TaskReference {
    /// The id.
    Id(u64),
    /// The id as a text, or an alias.
    Text(String),
}

/// A task that was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedTask {
    /// Id.
    pub id: u64,
}

impl TaskBody {
    /// A task of a class, without anything else.
    pub fn new(queue: &str, class: &str) -> Self {
        Self {
            queue: queue.to_owned(),
            class: class.to_owned(),
            args: None,
            parent: None,
            name: None,
            at: None,
            alias: None,
            by: None,
            inports: BTreeMap::new(),
            outports: BTreeMap::new(),
            input: BTreeMap::new(),
        }
    }
}

impl fmt::Display for TaskReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => fmt::Display::fmt(id, f),
            Self::Text(text) => f.write_str(text),
        }
    }
}
