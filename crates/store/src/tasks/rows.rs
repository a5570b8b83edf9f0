//! What a store with rows provides, so that [`super::execute`] can carry out units on it. Each method reads or writes
//! one row, or rows in the order of a key.

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, JsonText, PortAddress, PortDirection, PortItem, PortName, QueueName,
    StateField, TaskAlias, TaskId, TaskRecord, TaskRefusal,
};
use cronhold_schedule::Instant;

use super::process::{ProcessId, WorkerProcess};

/// The rows of tasks within one transaction.
///
/// The implementation keeps what can be looked up by more than one key in step with its rows: children, aliases of a
/// task, ready tasks, due tasks, leases, and the subscribers of channels.
pub trait TaskRows {
    /// Why a row cannot be read or written. A refusal passes through.
    type Error: From<TaskRefusal>;

    /// Increments a counter, and returns it. Counters begin at 1.
    fn next_number(&mut self, counter: TaskCounter) -> Result<u64, Self::Error>;
    fn number(&mut self, counter: TaskCounter) -> Result<u64, Self::Error>;

    fn task(&mut self, id: TaskId) -> Result<Option<TaskRecord>, Self::Error>;
    /// Inserts a task that does not exist yet.
    fn insert_task(&mut self, task: &TaskRecord) -> Result<(), Self::Error>;
    /// Replaces a task that exists.
    fn put_task(&mut self, task: &TaskRecord) -> Result<(), Self::Error>;
    fn delete_task(&mut self, id: TaskId) -> Result<(), Self::Error>;

    fn child(&mut self, parent: TaskId, name: &ChildName) -> Result<Option<TaskId>, Self::Error>;
    /// Children in the order of their names.
    fn children(
        &mut self,
        parent: TaskId,
        after: Option<&ChildName>,
        limit: usize,
    ) -> Result<Vec<(ChildName, TaskId)>, Self::Error>;

    fn alias(&mut self, alias: &TaskAlias) -> Result<Option<TaskId>, Self::Error>;
    fn aliases(&mut self, task: TaskId) -> Result<Vec<TaskAlias>, Self::Error>;
    fn put_alias(&mut self, alias: &TaskAlias, task: TaskId) -> Result<(), Self::Error>;
    fn delete_alias(&mut self, alias: &TaskAlias) -> Result<(), Self::Error>;

    fn state(&mut self, task: TaskId) -> Result<Vec<(StateField, JsonText)>, Self::Error>;
    /// The number of fields, and the bytes of their names and values.
    fn state_size(&mut self, task: TaskId) -> Result<(usize, usize), Self::Error>;
    fn put_state(&mut self, task: TaskId, field: &StateField, value: &JsonText) -> Result<(), Self::Error>;
    fn delete_state(&mut self, task: TaskId, field: &StateField) -> Result<(), Self::Error>;

    fn port(&mut self, port: &PortAddress) -> Result<Option<PortRecord>, Self::Error>;
    /// Ports in the order of their names, the template included.
    fn ports(&mut self, task: TaskId, direction: PortDirection) -> Result<Vec<(PortName, PortRecord)>, Self::Error>;
    /// Writes a whole port.
    fn put_port(&mut self, port: &PortAddress, record: &PortRecord) -> Result<(), Self::Error>;
    /// Writes only which items a port that exists has.
    fn put_bounds(&mut self, port: &PortAddress, record: &PortRecord) -> Result<(), Self::Error>;
    /// Deletes a port, but not its items.
    fn delete_port(&mut self, port: &PortAddress) -> Result<(), Self::Error>;

    /// At most `limit` items from a position. No item is read after the one that exceeds `bytes` of data together with
    /// those before it.
    fn items(
        &mut self,
        port: &PortAddress,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<PortItem>, Self::Error>;
    fn put_item(&mut self, port: &PortAddress, position: u64, item: &PortItem) -> Result<(), Self::Error>;
    /// Deletes the items from one position up to another, which stays.
    fn delete_items(&mut self, port: &PortAddress, from: u64, to: u64) -> Result<(), Self::Error>;

    /// The in ports that receive the messages of exactly this channel, in order.
    fn subscribers(&mut self, channel: &Channel) -> Result<Vec<PortAddress>, Self::Error>;

    /// Whether an in port receives the messages of one of these channels.
    fn has_subscribers(&mut self, channels: &[Channel]) -> Result<bool, Self::Error>;

    fn has_class(&mut self, queue: &QueueName, class: &ClassName) -> Result<bool, Self::Error>;
    fn class(&mut self, queue: &QueueName, class: &ClassName) -> Result<Option<ClassConfig>, Self::Error>;
    fn classes(&mut self, queue: &QueueName) -> Result<Vec<(ClassName, ClassConfig)>, Self::Error>;
    fn put_class(&mut self, queue: &QueueName, class: &ClassName, config: &ClassConfig) -> Result<(), Self::Error>;
    fn delete_class(&mut self, queue: &QueueName, class: &ClassName) -> Result<(), Self::Error>;

    /// The first ready task of a class, with its place in the queue.
    fn first_ready(&mut self, queue: &QueueName, class: &ClassName) -> Result<Option<(u64, TaskId)>, Self::Error>;
    /// Tasks whose time has come, the earliest first.
    fn due(&mut self, until: Instant, limit: usize) -> Result<Vec<TaskId>, Self::Error>;
    /// Tasks whose lease has expired, the earliest first.
    fn expired(&mut self, until: Instant, limit: usize) -> Result<Vec<TaskId>, Self::Error>;

    fn once(&mut self, key: &str) -> Result<Option<OnceRecord>, Self::Error>;
    fn put_once(&mut self, key: &str, record: &OnceRecord) -> Result<(), Self::Error>;
    /// Deletes at most `limit` keys that have expired.
    fn expire_once(&mut self, until: Instant, limit: usize) -> Result<(), Self::Error>;

    fn process(&mut self, id: &ProcessId) -> Result<Option<WorkerProcess>, Self::Error>;
    fn processes(&mut self) -> Result<Vec<WorkerProcess>, Self::Error>;
    fn put_process(&mut self, process: &WorkerProcess) -> Result<(), Self::Error>;
    fn delete_process(&mut self, id: &ProcessId) -> Result<(), Self::Error>;
}

/// A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskCounter {
    /// The last id of a task.
    Task,
    /// The last place in any queue.
    Entry,
    /// Steps that were committed.
    Processed,
    /// Steps that failed.
    Failed,
}

/// A port. Its items have the positions from `first` to `next`, which is the position of the next item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortRecord {
    pub default: Option<PortItem>,
    pub channels: Vec<Channel>,
    pub first: u64,
    pub next: u64,
}

impl PortRecord {
    /// The number of items.
    pub const fn size(&self) -> u64 {
        self.next - self.first
    }
}

/// A request that was committed with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnceRecord {
    pub expires_at: Instant,
    /// The tasks that it created.
    pub created: Vec<TaskId>,
}
