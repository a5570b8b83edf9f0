//! The changes of a batch, over the facts that it has read. Changes of one unit can be undone; what remains is written by
//! one script call.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, JsonText, PortAddress, PortDirection, PortItem, PortName, QueueName,
    StateField, TaskAlias, TaskId, TaskRecord,
};
use cronhold_schedule::Instant;
use cronhold_store::tasks::{OnceRecord, PortRecord, ProcessId, TaskCounter, WorkerProcess};

use super::RedisTaskError;
use super::facts::{FactTable, FactValues, TaskFact, number};
use super::texts::{QueueEntry, StoredTask, read_task};
use super::undo_table::UndoTable;

/// A change that is written as it is, beside those of rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DirectChange {
    /// Removes an entry from a queue, near its end.
    DropEntry(QueueName, Vec<u8>),
    /// Moves an entry whose time has come from a sorted set to its queue.
    MoveDue(&'static str, Vec<u8>),
    /// Removes a task from a channel to which none of its ports listens.
    LeaveChannel(Channel, TaskId),
    /// A command as it is. The number keeps their order.
    Command(usize, Vec<Vec<u8>>),
    /// A command whose key lacks the prefix.
    KeyCommand(usize, Vec<Vec<u8>>),
    /// Removes an entry that must still be in a queue.
    TakeBareJob(QueueName, Vec<u8>),
}

/// Entries of a queue with their texts.
pub(super) type ParsedEntries = Vec<(QueueEntry, Vec<u8>)>;

/// The tables of tasks as a batch sees them.
#[derive(Debug)]
pub(super) struct TaskRowSet {
    pub(super) facts: FactTable,
    pub(super) now: Instant,
    /// The largest id of a task that this process has seen. A server that has lost writes does not use it again.
    pub(super) largest_id: u64,
    /// Whether a fact was missing, so that what was computed since then counts for nothing.
    is_incomplete: bool,
    /// Tasks as they are stored, parsed.
    stored: BTreeMap<TaskId, Option<StoredTask>>,
    pub(super) tasks: UndoTable<TaskId, Option<TaskRecord>>,
    pub(super) children: UndoTable<(TaskId, ChildName), Option<TaskId>>,
    pub(super) aliases: UndoTable<TaskAlias, Option<TaskId>>,
    pub(super) state: UndoTable<(TaskId, StateField), Option<JsonText>>,
    pub(super) ports: UndoTable<PortAddress, Option<PortRecord>>,
    /// Items that are appended, by position; `None` if they were taken again.
    pub(super) items: UndoTable<(PortAddress, u64), Option<PortItem>>,
    /// Ports that were deleted, also if they were added again.
    pub(super) deleted_ports: UndoTable<PortAddress, ()>,
    /// In ports that start or stop to listen to a channel.
    pub(super) listening: UndoTable<(Channel, PortAddress), bool>,
    pub(super) classes: UndoTable<(QueueName, ClassName), Option<ClassConfig>>,
    pub(super) counters: UndoTable<TaskCounter, u64>,
    pub(super) once: UndoTable<String, OnceRecord>,
    pub(super) processes: UndoTable<ProcessId, Option<WorkerProcess>>,
    /// Ports whose number of items must be exactly as it was read.
    pub(super) exact_ports: UndoTable<PortAddress, ()>,
    pub(super) direct: UndoTable<DirectChange, ()>,
    /// The entries of a queue that come before this one are not for the class, or are leased.
    pub(super) ready_from: BTreeMap<(QueueName, ClassName), usize>,
    /// The last entries of queues, parsed, the next one first.
    pub(super) queue_entries: BTreeMap<(QueueName, usize), ParsedEntries>,
    /// The entries of tasks that were found to be ready.
    pub(super) ready_texts: BTreeMap<TaskId, Vec<u8>>,
    /// Tasks that may have got a place in their queue in this batch, and whether they still wait there.
    pub(super) new_ready: UndoTable<TaskId, bool>,
}

/// Changes that can be undone together: how many each table had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ChangeScope([usize; 15]);

impl TaskRowSet {
    pub(super) fn new(facts: FactTable, now: Instant, largest_id: u64) -> Self {
        Self {
            facts,
            now,
            largest_id,
            is_incomplete: false,
            stored: BTreeMap::new(),
            tasks: UndoTable::new(),
            children: UndoTable::new(),
            aliases: UndoTable::new(),
            state: UndoTable::new(),
            ports: UndoTable::new(),
            items: UndoTable::new(),
            deleted_ports: UndoTable::new(),
            listening: UndoTable::new(),
            classes: UndoTable::new(),
            counters: UndoTable::new(),
            once: UndoTable::new(),
            processes: UndoTable::new(),
            exact_ports: UndoTable::new(),
            direct: UndoTable::new(),
            ready_from: BTreeMap::new(),
            queue_entries: BTreeMap::new(),
            ready_texts: BTreeMap::new(),
            new_ready: UndoTable::new(),
        }
    }

    /// The minute in which steps are counted.
    pub(super) fn minute(&self) -> i64 {
        self.now.secs().div_euclid(60)
    }

    /// Whether a fact was missing since the last call.
    pub(super) fn take_incomplete(&mut self) -> bool {
        std::mem::take(&mut self.is_incomplete)
    }

    /// Keeps the changes so far.
    pub(super) fn keep(&mut self) {
        self.tasks.keep();
        self.children.keep();
        self.aliases.keep();
        self.state.keep();
        self.ports.keep();
        self.items.keep();
        self.deleted_ports.keep();
        self.listening.keep();
        self.classes.keep();
        self.counters.keep();
        self.once.keep();
        self.processes.keep();
        self.exact_ports.keep();
        self.direct.keep();
        self.new_ready.keep();
    }

    /// Undoes the changes since the last call of [`Self::keep`].
    pub(super) fn undo(&mut self) {
        self.undo_scope(ChangeScope::default());
    }

    /// Begins changes that can be undone together.
    pub(super) const fn begin_scope(&self) -> ChangeScope {
        ChangeScope([
            self.tasks.depth(),
            self.children.depth(),
            self.aliases.depth(),
            self.state.depth(),
            self.ports.depth(),
            self.items.depth(),
            self.deleted_ports.depth(),
            self.listening.depth(),
            self.classes.depth(),
            self.counters.depth(),
            self.once.depth(),
            self.processes.depth(),
            self.exact_ports.depth(),
            self.direct.depth(),
            self.new_ready.depth(),
        ])
    }

    /// Undoes the changes of a scope.
    pub(super) fn undo_scope(&mut self, scope: ChangeScope) {
        let ChangeScope(depths) = scope;
        self.tasks.undo_to(depths[0]);
        self.children.undo_to(depths[1]);
        self.aliases.undo_to(depths[2]);
        self.state.undo_to(depths[3]);
        self.ports.undo_to(depths[4]);
        self.items.undo_to(depths[5]);
        self.deleted_ports.undo_to(depths[6]);
        self.listening.undo_to(depths[7]);
        self.classes.undo_to(depths[8]);
        self.counters.undo_to(depths[9]);
        self.once.undo_to(depths[10]);
        self.processes.undo_to(depths[11]);
        self.exact_ports.undo_to(depths[12]);
        self.direct.undo_to(depths[13]);
        self.new_ready.undo_to(depths[14]);
        self.ready_texts.clear();
        self.ready_from.clear();
    }

    /// Adds a command whose key lacks the prefix, which is sent after those that were added before.
    pub(super) fn add_raw_command(&mut self, parts: Vec<Vec<u8>>) {
        let number = self.direct.len();
        self.direct.put(DirectChange::KeyCommand(number, parts), ());
    }

    /// Adds a command, which is sent after those that were added before.
    pub(super) fn add_command(&mut self, parts: Vec<String>) {
        let number = self.direct.len();
        let parts = parts.into_iter().map(String::into_bytes).collect();
        self.direct.put(DirectChange::Command(number, parts), ());
    }

    /// The values of a fact; none if it is missing, which is noted.
    pub(super) fn fact(&mut self, fact: &TaskFact) -> Option<&FactValues> {
        let found = self.facts.get(fact);
        self.is_incomplete |= found.is_none();
        found
    }

    /// The first value of a fact, unless it is empty.
    pub(super) fn fact_text(&mut self, fact: &TaskFact) -> Result<Option<String>, RedisTaskError> {
        let text = self.fact(fact).and_then(|values| values.first()).cloned().unwrap_or_default();
        let text = String::from_utf8(text).map_err(|error| RedisTaskError::damaged(&format!("{fact:?}"), &error))?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// The values of a fact as texts.
    pub(super) fn fact_texts(&mut self, fact: &TaskFact) -> Result<Vec<String>, RedisTaskError> {
        let values = self.fact(fact).cloned().unwrap_or_default();
        let texts = values.into_iter().map(String::from_utf8).collect::<Result<_, _>>();
        texts.map_err(|error| RedisTaskError::damaged(&format!("{fact:?}"), &error))
    }

    /// The values of a hash: fields and values in turns.
    pub(super) fn fact_pairs(&mut self, fact: &TaskFact) -> Result<Vec<(String, String)>, RedisTaskError> {
        Ok(pairs(self.fact_texts(fact)?))
    }

    /// A task as it is stored.
    pub(super) fn stored_task(&mut self, id: TaskId) -> Result<Option<&StoredTask>, RedisTaskError> {
        let (fact, minute) = (TaskFact::Task(id), self.minute());
        // Marks it as used, also if it was parsed before.
        let Some(values) = self.facts.get(&fact) else {
            self.is_incomplete = true;
            return Ok(None);
        };
        let stored = match self.stored.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(read_task(id, values, minute)?),
        };
        Ok(stored.as_ref())
    }

    /// A task as it is stored, which may change before the commit.
    pub(super) fn peek_task(&self, id: TaskId) -> Option<StoredTask> {
        let values = self.facts.peek(&TaskFact::Task(id))?;
        read_task(id, values, self.minute()).ok().flatten()
    }

    /// The stored ports of a task in one direction by name.
    pub(super) fn stored_ports(
        &mut self,
        task: TaskId,
        direction: PortDirection,
    ) -> Result<BTreeMap<PortName, PortRecord>, RedisTaskError> {
        let values = self.fact_texts(&TaskFact::Ports(task, direction))?;
        read_ports(&values).map_err(|why| RedisTaskError::damaged(&format!("job:{task}:{direction}ports"), &why))
    }

    /// The text of the position of the first item of a port as it is stored.
    pub(super) fn stored_position(&self, port: &PortAddress) -> Vec<u8> {
        let values = self.facts.peek(&TaskFact::Ports(port.task, port.direction));
        let Some(values) = values else { return Vec::new() };
        let [names, .., sizes] = port_parts(values);
        let index = names.iter().position(|name| *name == port.port.as_str().as_bytes());
        index.and_then(|index| sizes.get(2 * index)).cloned().unwrap_or_default()
    }
}

/// Fields and values in turns.
pub(super) fn pairs(texts: Vec<String>) -> Vec<(String, String)> {
    let mut texts = texts.into_iter();
    let mut pairs = Vec::new();
    while let (Some(field), Some(value)) = (texts.next(), texts.next()) {
        pairs.push((field, value));
    }
    pairs
}

/// Splits the values of ports: names, defaults, channels, and what follows.
pub(super) fn port_parts<T: AsRef<[u8]>>(values: &[T]) -> [&[T]; 4] {
    let mut rest = values;
    let mut parts = [&values[..0]; 4];
    for part in parts.iter_mut().take(3) {
        let Some((count, after)) = rest.split_first() else { break };
        let count = number::<usize>(count.as_ref()).unwrap_or(0).min(after.len());
        (*part, rest) = after.split_at(count);
    }
    parts[3] = rest;
    parts
}

/// Reads ports with their sizes.
pub(super) fn read_ports(values: &[String]) -> Result<BTreeMap<PortName, PortRecord>, String> {
    let [names, defaults, channels, sizes] = port_parts(values);
    let mut ports = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        let name = PortName::parse(name).map_err(|error| error.to_string())?;
        let at = |offset: usize| {
            sizes.get(2 * index + offset).and_then(|text: &String| text.parse::<u64>().ok()).unwrap_or(0)
        };
        let (first, size) = (at(0), at(1));
        ports.insert(name, PortRecord { first, next: first + size, ..PortRecord::default() });
    }
    let pairs = |part: &[String]| pairs(part.to_vec());
    for (name, text) in pairs(defaults) {
        if let Some(port) = ports.get_mut(name.as_str()) {
            port.default = Some(PortItem::parse(&text).map_err(|error| error.to_string())?);
        }
    }
    for (name, text) in pairs(channels) {
        if let Some(port) = ports.get_mut(name.as_str()) {
            port.channels = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        }
    }
    Ok(ports)
}
