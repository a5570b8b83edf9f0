//! Tasks in lists, in detail, and as a tree.

use std::collections::BTreeMap;

use cronhold_core::task::{JsonText, TaskRecord, TaskStatus};
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::TaskPortSummary;

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Task)]
pub struct TaskSummary {
    /// Id.
    pub id: u64,
    /// Queue.
    pub queue: String,
    /// Class.
    pub class: String,
    /// Status.
    #[schema(value_type = String, example = "suspended")]
    pub status: TaskStatus,
    /// Id of the parent; `null` if there is none.
    pub parent: Option<u64>,
    /// Name among the children of the parent; `null` without a parent.
    pub name: Option<String>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Instant,
    /// Name of its creator; empty if none was given.
    pub created_by: String,
    /// When its latest step began; `null` before the first one.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ran_at: Option<Instant>,
    /// When a delayed step is due; `null` if there is none.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub run_at: Option<Instant>,
}

/// A page of tasks, ordered by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskList {
    /// Tasks.
    pub tasks: Vec<TaskSummary>,
    /// The `after` of the next page; `null` on the last page.
    pub next: Option<u64>,
}

/// A task in detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskDetail {
    /// The task.
    #[serde(flatten)]
    pub task: TaskSummary,
    /// Args; `null` if none were given.
    #[schema(value_type = Option<Vec<Value>>)]
    pub args: Option<JsonText>,
    /// Aliases.
    pub aliases: Vec<String>,
    /// Ids of its children by name, at most 1,000.
    pub children: BTreeMap<String, u64>,
    /// Whether it has further children.
    pub more_children: bool,
    /// In ports by name.
    pub inports: BTreeMap<String, TaskPortSummary>,
    /// Out ports by name.
    pub outports: BTreeMap<String, TaskPortSummary>,
    /// Whether in ports are created when they are first used.
    pub creates_inports: bool,
    /// Whether out ports are created when they are first used.
    pub creates_outports: bool,
    /// State by field.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub state: BTreeMap<String, JsonText>,
}

/// A child of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskChild {
    /// Name among the children.
    pub name: String,
    /// Id.
    pub id: u64,
    /// Queue.
    pub queue: String,
    /// Class.
    pub class: String,
    /// Status.
    #[schema(value_type = String, example = "suspended")]
    pub status: TaskStatus,
}

/// A page of children, ordered by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskChildList {
    /// Children.
    pub children: Vec<TaskChild>,
    /// The `after` of the next page; `null` on the last page.
    pub next: Option<String>,
}

/// A task and its descendants, each parent before its children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskTree {
    /// The task, which comes first, and its descendants.
    pub tasks: Vec<TaskTreeNode>,
    /// Whether there are further descendants.
    pub cut: bool,
}

/// A task in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskTreeNode {
    /// Number of parents up to the root of the tree; 0 for the root.
    pub depth: usize,
    /// The task.
    #[serde(flatten)]
    pub task: TaskSummary,
}

impl From<&TaskRecord> for TaskSummary {
    fn from(record: &TaskRecord) -> Self {
        Self {
            id: record.id.number(),
            queue: record.queue.to_string(),
            class: record.class.to_string(),
            status: record.status,
            parent: record.parent.as_ref().map(|(parent, _)| parent.number()),
            name: record.parent.as_ref().map(|(_, name)| name.to_string()),
            created_at: record.created_at,
            created_by: record.created_by.clone(),
            ran_at: record.ran_at,
            run_at: record.run_at,
        }
    }
}
