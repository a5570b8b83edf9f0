//! Names of the keys of tasks: those of SideJob and Sidekiq, and our own below `cronhold:`. All of them begin with the
//! prefix of the URL.

use cronhold_core::task::{Channel, PortAddress, PortDirection, QueueName, TaskId};
use cronhold_store::tasks::ProcessId;

/// Writes the names of keys with a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskKeys {
    /// Empty, or a text that ends with a colon.
    prefix: String,
}

impl TaskKeys {
    /// Keys with this prefix, to which a colon is appended. Without a prefix they are SideJob's own.
    pub(crate) fn new(prefix: &str) -> Self {
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}:") };
        Self { prefix }
    }

    /// What precedes every key.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A key with this rest.
    pub(super) fn of(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    /// A key of a task.
    pub(super) fn job(&self, task: TaskId, rest: &str) -> String {
        format!("{}job:{task}:{rest}", self.prefix)
    }

    pub(super) fn record(&self, task: TaskId) -> String {
        format!("{}cronhold:task:{task}", self.prefix)
    }

    /// The hash with the positions of the first items of the ports of a task.
    pub(super) fn positions(&self, task: TaskId) -> String {
        format!("{}cronhold:ports:{task}", self.prefix)
    }

    pub(super) fn items(&self, port: &PortAddress) -> String {
        format!("{}{}", self.prefix, items_rest(port))
    }

    /// The set of the ports of a task; `:default` and `:channels` follow it in the names of two more keys.
    pub(super) fn ports(&self, task: TaskId, direction: PortDirection) -> String {
        self.job(task, &format!("{direction}ports"))
    }

    pub(super) fn channel(&self, channel: &Channel) -> String {
        format!("{}channel:{channel}", self.prefix)
    }

    pub(super) fn queue(&self, queue: &QueueName) -> String {
        format!("{}{}", self.prefix, queue_rest(queue))
    }

    pub(super) fn process(&self, process: &ProcessId, rest: &str) -> String {
        format!("{}{process}{rest}", self.prefix)
    }

    /// The channel on which processes report that queues have ready tasks.
    pub(super) fn arrivals(&self) -> String {
        self.of("cronhold:arrivals")
    }
}

/// The key of a queue without the prefix.
pub(super) fn queue_rest(queue: &QueueName) -> String {
    format!("queue:{queue}")
}

/// The key of the items of a port without the prefix.
pub(super) fn items_rest(port: &PortAddress) -> String {
    port.to_string()
}

/// The field of a port in the hash of positions.
pub(super) fn position_field(port: &PortAddress) -> String {
    format!("{}:{}", port.direction, port.port)
}
