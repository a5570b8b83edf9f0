//! The tables of the reference store, with their indexes. Every change can be undone.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, JsonText, PortAddress, PortDirection, PortItem, QueueName, StateField,
    TaskAlias, TaskId, TaskRecord,
};
use cronhold_schedule::Instant;

use super::super::process::{ProcessId, WorkerProcess};
use super::super::rows::{OnceRecord, PortRecord, TaskCounter};

/// All rows. Fields are changed by [`TaskTables::apply`] only, which keeps the indexes in step.
#[derive(Debug, Default)]
pub(super) struct TaskTables {
    pub(super) tasks: BTreeMap<TaskId, TaskRecord>,
    pub(super) aliases: BTreeMap<TaskAlias, TaskId>,
    pub(super) state: BTreeMap<(TaskId, StateField), JsonText>,
    pub(super) ports: BTreeMap<PortAddress, PortRecord>,
    pub(super) items: BTreeMap<(PortAddress, u64), PortItem>,
    pub(super) classes: BTreeMap<(QueueName, ClassName), ClassConfig>,
    pub(super) once: BTreeMap<String, OnceRecord>,
    pub(super) processes: BTreeMap<ProcessId, WorkerProcess>,
    pub(super) counters: BTreeMap<TaskCounter, u64>,
    pub(super) children: BTreeMap<(TaskId, ChildName), TaskId>,
    pub(super) aliases_by_task: BTreeSet<(TaskId, TaskAlias)>,
    pub(super) ready: BTreeMap<(QueueName, ClassName, u64), TaskId>,
    pub(super) due: BTreeSet<(Instant, TaskId)>,
    pub(super) leases: BTreeSet<(Instant, TaskId)>,
    pub(super) subscribers: BTreeSet<(Channel, PortAddress)>,
    /// What undoes the changes since the last commit, the latest last.
    undo: Vec<TableChange>,
}

/// One row with its new content; `None` if it is deleted.
#[derive(Debug)]
pub(super) enum TableChange {
    Task(TaskId, Option<Box<TaskRecord>>),
    Alias(TaskAlias, Option<TaskId>),
    State((TaskId, StateField), Option<JsonText>),
    Port(PortAddress, Option<PortRecord>),
    Item((PortAddress, u64), Option<PortItem>),
    Class((QueueName, ClassName), Option<Box<ClassConfig>>),
    Once(String, Option<OnceRecord>),
    Process(ProcessId, Option<Box<WorkerProcess>>),
    Counter(TaskCounter, Option<u64>),
}

impl TaskTables {
    /// Makes a change that can be undone.
    pub(super) fn change(&mut self, change: TableChange) {
        let undo = self.apply(change);
        self.undo.push(undo);
    }

    /// Keeps all changes.
    pub(super) fn commit(&mut self) {
        self.undo.clear();
    }

    /// Undoes all changes since the last commit.
    pub(super) fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            self.apply(undo);
        }
    }

    /// Makes a change, and returns the one that undoes it.
    fn apply(&mut self, change: TableChange) -> TableChange {
        match change {
            TableChange::Task(id, row) => TableChange::Task(id, self.set_task(id, row.map(|row| *row)).map(Box::new)),
            TableChange::Alias(alias, task) => {
                let before = set(&mut self.aliases, alias.clone(), task);
                if let Some(before) = before {
                    self.aliases_by_task.remove(&(before, alias.clone()));
                }
                self.aliases_by_task.extend(task.map(|task| (task, alias.clone())));
                TableChange::Alias(alias, before)
            }
            TableChange::State(key, value) => {
                let before = set(&mut self.state, key.clone(), value);
                TableChange::State(key, before)
            }
            TableChange::Port(port, row) => {
                let before = self.set_port(&port, row);
                TableChange::Port(port, before)
            }
            TableChange::Item(key, item) => {
                let before = set(&mut self.items, key.clone(), item);
                TableChange::Item(key, before)
            }
            TableChange::Class(key, config) => {
                let before = set(&mut self.classes, key.clone(), config.map(|config| *config));
                TableChange::Class(key, before.map(Box::new))
            }
            TableChange::Once(key, record) => {
                let before = set(&mut self.once, key.clone(), record);
                TableChange::Once(key, before)
            }
            TableChange::Process(id, process) => {
                let before = set(&mut self.processes, id.clone(), process.map(|process| *process));
                TableChange::Process(id, before.map(Box::new))
            }
            TableChange::Counter(counter, number) => {
                TableChange::Counter(counter, set(&mut self.counters, counter, number))
            }
        }
    }

    fn set_task(&mut self, id: TaskId, row: Option<TaskRecord>) -> Option<TaskRecord> {
        let before = self.tasks.remove(&id);
        if let Some(before) = &before {
            self.index_task(before, false);
        }
        if let Some(row) = row {
            self.index_task(&row, true);
            self.tasks.insert(id, row);
        }
        before
    }

    /// Adds a task to the indexes, or removes it.
    fn index_task(&mut self, task: &TaskRecord, is_added: bool) {
        if let Some((parent, name)) = &task.parent {
            set(&mut self.children, (*parent, name.clone()), is_added.then_some(task.id));
        }
        if let Some(entry) = task.entry.filter(|_| task.is_ready()) {
            let key = (task.queue.clone(), task.class.clone(), entry);
            set(&mut self.ready, key, is_added.then_some(task.id));
        }
        let times = [(&mut self.due, task.run_at), (&mut self.leases, task.lease.map(|lease| lease.until))];
        for (index, at) in times {
            let Some(at) = at else { continue };
            match is_added {
                true => index.insert((at, task.id)),
                false => index.remove(&(at, task.id)),
            };
        }
    }

    fn set_port(&mut self, port: &PortAddress, row: Option<PortRecord>) -> Option<PortRecord> {
        let is_in = port.direction == PortDirection::In;
        // The template never receives anything.
        let listens = is_in && !port.port.is_template();
        let before = self.ports.remove(port);
        for channel in before.iter().flat_map(|before| &before.channels).filter(|_| listens) {
            self.subscribers.remove(&(channel.clone(), port.clone()));
        }
        if let Some(row) = row {
            let channels = row.channels.iter().filter(|_| listens);
            self.subscribers.extend(channels.map(|channel| (channel.clone(), port.clone())));
            self.ports.insert(port.clone(), row);
        }
        before
    }
}

/// Sets or removes a value, and returns the one before.
fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}
