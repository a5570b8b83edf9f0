//! Requests that change a task.

use std::collections::BTreeMap;

use cronhold_core::task::JsonText;
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{TaskPortOptions, TaskReference};

/// A request for a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRunBody {
    /// Whether the task runs whatever its status.
    #[serde(default)]
    pub force: bool,
    /// When the step is due; default: now. A step that begins before that stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Instant>,
    /// Whether to run the parent instead of the task.
    #[serde(default)]
    pub parent: bool,
}

/// A request to end a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminateBody {
    /// Whether to end all descendants too.
    #[serde(default)]
    pub recursive: bool,
}

/// A task that gets a parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptBody {
    /// Task without a parent: its id or an alias.
    pub child: TaskReference,
    /// Its name among the children.
    pub name: String,
}

/// A child that is taken from its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DisownBody {
    /// Its name among the children.
    pub name: String,
}

/// Aliases that are added and removed together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AliasesBody {
    /// New aliases, which no other task may have. An alias begins with a letter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Aliases of the task that are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// Fields of the state that are set and removed together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStateBody {
    /// New values by field. Other fields stay as they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub set: BTreeMap<String, JsonText>,
    /// Fields that are removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
}

/// The new ports of a task, beside those of its class. Ports that remain keep their values; the values of others are
/// deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskPortsBody {
    /// In ports by name; without this key they stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inports: Option<BTreeMap<String, TaskPortOptions>>,
    /// Out ports by name; without this key they stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outports: Option<BTreeMap<String, TaskPortOptions>>,
}
