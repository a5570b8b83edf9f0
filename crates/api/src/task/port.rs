//! Ports of tasks and their values.

use cronhold_core::task::{JsonText, PortItem};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{TaskReference, on, present};

/// Options of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskPortOptions {
    /// What a read returns while the port is empty. `null` is a value too; without this key there is no default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub default: Option<JsonText>,
    /// For an in port, the channels whose messages it receives; for an out port, the channels to which it publishes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
}

/// A port without its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TaskPort)]
pub struct TaskPortSummary {
    /// Number of values.
    pub size: u64,
    /// What a read returns while the port is empty; without this key there is no default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub default: Option<JsonText>,
    /// Channels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
}

/// A value of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortItemValue {
    /// The value.
    #[schema(value_type = Value)]
    pub data: JsonText,
    /// Who wrote it, such as the task and the channel; empty if it was written outside of any.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub context: Option<JsonText>,
}

/// Values of a port, the first one first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortItemList {
    /// Name of the port.
    pub name: String,
    /// Number of all values that it has.
    pub size: u64,
    /// Position of the first value in the list. Positions count up with each value that is written, and stay the same
    /// when values before them are read.
    pub position: u64,
    /// Values, at most 1 MiB of them, but at least one if there is one.
    pub items: Vec<PortItemValue>,
    /// The `from` of the next page; `null` on the last page.
    pub next: Option<u64>,
    /// What a read returns while the port is empty; without this key there is no default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub default: Option<JsonText>,
    /// Channels.
    pub channels: Vec<String>,
}

/// A write to a port, or a change of its options. All of it takes effect together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortChangeBody {
    /// A value that is written.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub data: Option<JsonText>,
    /// Values that are written in their order, after `data`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Value>)]
    pub list: Vec<JsonText>,
    /// The new default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub default: Option<JsonText>,
    /// Removes the default.
    #[serde(default)]
    pub clear_default: bool,
    /// The new channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<Vec<String>>,
    /// Whether written values request a step: of the task for an in port, of its parent for an out port.
    #[serde(default = "on")]
    pub notify: bool,
}

/// How many values are taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortReadBody {
    /// Maximum number of values; default: 1.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub count: u64,
    /// Whether to return the default if there are no values.
    #[serde(default = "on")]
    pub default: bool,
}

/// Values that were taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortReadReply {
    /// The values in their order; empty if there are none and no default either.
    pub items: Vec<PortItemValue>,
}

/// A port of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskPortPlace {
    /// Task: its id or an alias.
    pub task: TaskReference,
    /// `in` or `out`.
    #[schema(example = "in")]
    pub direction: String,
    /// Name of the port.
    pub port: String,
}

/// Ports to which the values of a port are moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectBody {
    /// `in` or `out`, for the port of the task in the path.
    #[schema(example = "out")]
    pub direction: String,
    /// Name of that port.
    pub port: String,
    /// Where the values go; each port gets all of them.
    #[schema(min_items = 1)]
    pub to: Vec<TaskPortPlace>,
}

/// What was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConnectReply {
    /// Number of values.
    pub moved: u64,
}

const fn one() -> u64 {
    1
}

impl Default for PortChangeBody {
    fn default() -> Self {
        let (data, list, default, clear_default) = (None, Vec::new(), None, false);
        Self { data, list, default, clear_default, channels: None, notify: true }
    }
}

impl Default for PortReadBody {
    fn default() -> Self {
        Self { count: 1, default: true }
    }
}

impl From<&PortItem> for PortItemValue {
    fn from(item: &PortItem) -> Self {
        let context = item.context.as_ref().filter(|context| !context.is_empty());
        Self { data: item.data.clone(), context: context.map(|context| context.to_json()) }
    }
}
