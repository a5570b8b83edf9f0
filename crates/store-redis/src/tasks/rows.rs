//! The rows of tasks for `execute`: facts with the changes of the batch. A row whose fact is missing looks as if it did
//! not exist; the attempt is then repeated with the fact.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, JsonText, PortAddress, PortDirection, PortItem, PortName, QueueName,
    StateField, TaskAlias, TaskId, TaskRecord,
};
use cronhold_schedule::Instant;
use cronhold_store::tasks::{OnceRecord, PortRecord, ProcessId, TaskCounter, TaskRows, WorkerProcess};

use super::RedisTaskError;
use super::changes::{DirectChange, TaskRowSet};
use super::facts::TaskFact;
use super::process_texts::{process_of_text, signal_of_text};
use super::ready::DueSet;
use super::sweep::entry_is_doubtful;
use super::texts::seconds_text;

/// The bytes of stored items for each byte of data that is read: an item also has its context and options.
const STORED_BYTES_FACTOR: usize = 4;

type RowResult<T> = Result<T, RedisTaskError>;

impl TaskRows for TaskRowSet {
    type Error = RedisTaskError;

    fn next_number(&mut self, counter: TaskCounter) -> RowResult<u64> {
        let next = match counter {
            // Only its time counts: the place in a queue is that in the list.
            TaskCounter::Entry => return Ok(self.now.micros().max(1).cast_unsigned()),
            TaskCounter::Task => self.number(counter)? + 1,
            // What this batch adds.
            TaskCounter::Processed | TaskCounter::Failed => self.counters.get(&counter).copied().unwrap_or(0) + 1,
        };
        self.counters.put(counter, next);
        Ok(next)
    }

    fn number(&mut self, counter: TaskCounter) -> RowResult<u64> {
        if let Some(number) = self.counters.get(&counter) {
            return Ok(*number);
        }
        let fact = match counter {
            TaskCounter::Task => TaskFact::LastId,
            TaskCounter::Processed => TaskFact::Stat("processed"),
            TaskCounter::Failed => TaskFact::Stat("failed"),
            TaskCounter::Entry => return Ok(0),
        };
        let stored = self.fact_text(&fact)?.and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(if counter == TaskCounter::Task { stored.max(self.largest_id) } else { stored })
    }

    fn task(&mut self, id: TaskId) -> RowResult<Option<TaskRecord>> {
        if let Some(changed) = self.tasks.get(&id) {
            return Ok(changed.clone());
        }
        let now = self.now;
        let Some(stored) = self.stored_task(id)? else { return Ok(None) };
        let mut task = stored.task.clone();
        if entry_is_doubtful(&task, now) {
            task.entry = None;
        }
        Ok(Some(task))
    }

    fn insert_task(&mut self, task: &TaskRecord) -> RowResult<()> {
        // No id is used twice, so that nothing needs to be read.
        for direction in [PortDirection::In, PortDirection::Out] {
            self.facts.put(TaskFact::Ports(task.id, direction), vec![b"0".to_vec(); 3]);
        }
        self.tasks.put(task.id, Some(task.clone()));
        Ok(())
    }

    fn put_task(&mut self, task: &TaskRecord) -> RowResult<()> {
        let is_ready = task.is_ready();
        if is_ready || self.new_ready.get(&task.id) == Some(&true) {
            self.new_ready.put(task.id, is_ready);
        }
        if task.lease.is_some()
            && let Some(text) = self.ready_texts.remove(&task.id)
        {
            self.direct.put(DirectChange::DropEntry(task.queue.clone(), text), ());
        }
        let before = self.task(task.id)?.and_then(|task| task.parent);
        if before != task.parent {
            if let Some((parent, name)) = before {
                self.children.put((parent, name), None);
            }
            if let Some((parent, name)) = &task.parent {
                self.children.put((*parent, name.clone()), Some(task.id));
            }
        }
        self.tasks.put(task.id, Some(task.clone()));
        Ok(())
    }

    fn delete_task(&mut self, id: TaskId) -> RowResult<()> {
        if let Some((parent, name)) = self.task(id)?.and_then(|task| task.parent) {
            self.children.put((parent, name), None);
        }
        self.tasks.put(id, None);
        Ok(())
    }

    fn child(&mut self, parent: TaskId, name: &ChildName) -> RowResult<Option<TaskId>> {
        if let Some(changed) = self.children.get(&(parent, name.clone())) {
            return Ok(*changed);
        }
        let fact = TaskFact::Child(parent, name.clone());
        Ok(self.fact_text(&fact)?.and_then(|text| TaskId::parse(&text).ok()))
    }

    fn children(
        &mut self,
        parent: TaskId,
        after: Option<&ChildName>,
        limit: usize,
    ) -> RowResult<Vec<(ChildName, TaskId)>> {
        let mut all = BTreeMap::new();
        for (name, id) in self.fact_pairs(&TaskFact::Children(parent))? {
            let damaged = |why: &dyn std::fmt::Display| RedisTaskError::damaged(&format!("job:{parent}:children"), why);
            let name = ChildName::parse(&name).map_err(|error| damaged(&error))?;
            all.insert(name, TaskId::parse(&id).map_err(|error| damaged(&error))?);
        }
        let changed = self.children.range((parent, ChildName::first())..);
        for ((_, name), id) in changed.take_while(|((of, _), _)| *of == parent) {
            match id {
                Some(id) => all.insert(name.clone(), *id),
                None => all.remove(name),
            };
        }
        let rest = all.into_iter().filter(|(name, _)| after.is_none_or(|after| name > after));
        let page: Vec<(ChildName, TaskId)> = rest.take(limit).collect();
        for (_, id) in &page {
            // A caller that lists children reads them next.
            if self.tasks.get(id).is_none() {
                self.facts.want(TaskFact::Task(*id));
                self.facts.want(TaskFact::Children(*id));
            }
        }
        Ok(page)
    }

    fn alias(&mut self, alias: &TaskAlias) -> RowResult<Option<TaskId>> {
        if let Some(changed) = self.aliases.get(alias) {
            return Ok(*changed);
        }
        Ok(self.fact_text(&TaskFact::Alias(alias.clone()))?.and_then(|text| TaskId::parse(&text).ok()))
    }

    fn aliases(&mut self, task: TaskId) -> RowResult<Vec<TaskAlias>> {
        let stored = self.fact_texts(&TaskFact::Aliases(task))?;
        let mut all: BTreeSet<TaskAlias> = stored.iter().filter_map(|text| TaskAlias::parse(text).ok()).collect();
        all.retain(|alias| self.aliases.get(alias).is_none_or(|owner| *owner == Some(task)));
        all.extend(self.aliases.iter().filter(|(_, owner)| **owner == Some(task)).map(|(alias, _)| alias.clone()));
        Ok(all.into_iter().collect())
    }

    fn put_alias(&mut self, alias: &TaskAlias, task: TaskId) -> RowResult<()> {
        self.aliases.put(alias.clone(), Some(task));
        Ok(())
    }

    fn delete_alias(&mut self, alias: &TaskAlias) -> RowResult<()> {
        self.alias(alias)?;
        self.aliases.put(alias.clone(), None);
        Ok(())
    }

    fn state(&mut self, task: TaskId) -> RowResult<Vec<(StateField, JsonText)>> {
        let mut all = BTreeMap::new();
        for (field, value) in self.fact_pairs(&TaskFact::State(task))? {
            let damaged = |why: &dyn std::fmt::Display| RedisTaskError::damaged(&format!("job:{task}:state"), why);
            let field = StateField::parse(&field).map_err(|error| damaged(&error))?;
            all.insert(field, JsonText::parse(&value).map_err(|error| damaged(&error))?);
        }
        let changed = self.state.range((task, StateField::first())..);
        for ((_, field), value) in changed.take_while(|((of, _), _)| *of == task) {
            match value {
                Some(value) => all.insert(field.clone(), value.clone()),
                None => all.remove(field),
            };
        }
        Ok(all.into_iter().collect())
    }

    fn state_size(&mut self, task: TaskId) -> RowResult<(usize, usize)> {
        let fields = self.state(task)?;
        Ok((fields.len(), fields.iter().map(|(field, value)| field.as_str().len() + value.as_str().len()).sum()))
    }

    fn put_state(&mut self, task: TaskId, field: &StateField, value: &JsonText) -> RowResult<()> {
        self.state.put((task, field.clone()), Some(value.clone()));
        Ok(())
    }

    fn delete_state(&mut self, task: TaskId, field: &StateField) -> RowResult<()> {
        self.state.put((task, field.clone()), None);
        Ok(())
    }

    fn port(&mut self, port: &PortAddress) -> RowResult<Option<PortRecord>> {
        if let Some(changed) = self.ports.get(port) {
            return Ok(changed.clone());
        }
        Ok(self.stored_ports(port.task, port.direction)?.remove(&port.port))
    }

    fn ports(&mut self, task: TaskId, direction: PortDirection) -> RowResult<Vec<(PortName, PortRecord)>> {
        let mut all = self.stored_ports(task, direction)?;
        let first = PortAddress { task, direction, port: PortName::first() };
        let changed = self.ports.range(first..);
        for (address, record) in changed.take_while(|(at, _)| at.task == task && at.direction == direction) {
            match record {
                Some(record) => all.insert(address.port.clone(), record.clone()),
                None => all.remove(&address.port),
            };
        }
        Ok(all.into_iter().collect())
    }

    fn put_port(&mut self, port: &PortAddress, record: &PortRecord) -> RowResult<()> {
        let before = self.port(port)?.map(|record| record.channels).unwrap_or_default();
        self.change_listening(port, &before, &record.channels);
        self.ports.put(port.clone(), Some(record.clone()));
        Ok(())
    }

    fn put_bounds(&mut self, port: &PortAddress, record: &PortRecord) -> RowResult<()> {
        self.ports.put(port.clone(), Some(record.clone()));
        Ok(())
    }

    fn delete_port(&mut self, port: &PortAddress) -> RowResult<()> {
        let before = self.port(port)?.map(|record| record.channels).unwrap_or_default();
        self.change_listening(port, &before, &[]);
        self.ports.put(port.clone(), None);
        self.deleted_ports.put(port.clone(), ());
        Ok(())
    }

    fn items(&mut self, port: &PortAddress, from: u64, limit: usize, bytes: usize) -> RowResult<Vec<PortItem>> {
        let mut found = Vec::new();
        let mut size = 0;
        if self.deleted_ports.get(port).is_none()
            && let Some(stored) = self.stored_ports(port.task, port.direction)?.get(&port.port)
            && from < stored.next
        {
            let (index, count) = (from.saturating_sub(stored.first), stored.next - from);
            let limit = limit.min(usize::try_from(count).unwrap_or(usize::MAX));
            let fact = TaskFact::Items(port.clone(), index, limit, bytes.saturating_mul(STORED_BYTES_FACTOR));
            for text in self.fact_texts(&fact)? {
                if size > bytes {
                    break;
                }
                let item =
                    PortItem::parse(&text).map_err(|error| RedisTaskError::damaged(&port.to_string(), &error))?;
                size += item.data.as_str().len();
                found.push(item);
            }
        }
        let appended = self.items.range((port.clone(), from)..).take_while(|((of, _), _)| of == port);
        for item in appended.filter_map(|(_, item)| item.as_ref()) {
            if size > bytes || found.len() >= limit {
                break;
            }
            size += item.data.as_str().len();
            found.push(item.clone());
        }
        Ok(found)
    }

    fn put_item(&mut self, port: &PortAddress, position: u64, item: &PortItem) -> RowResult<()> {
        self.items.put((port.clone(), position), Some(item.clone()));
        Ok(())
    }

    fn delete_items(&mut self, port: &PortAddress, from: u64, to: u64) -> RowResult<()> {
        let appended = self.items.range((port.clone(), from)..(port.clone(), to));
        let keys: Vec<(PortAddress, u64)> = appended.map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.items.put(key, None);
        }
        Ok(())
    }

    fn subscribers(&mut self, channel: &Channel) -> RowResult<Vec<PortAddress>> {
        let values = self.fact_texts(&TaskFact::Subscribers(channel.clone()))?;
        let mut all = BTreeSet::new();
        let mut rest = &values[..];
        while let [id, count, after @ ..] = rest {
            let (pairs, after) = after.split_at(count.parse().unwrap_or(0).min(after.len()));
            rest = after;
            let Ok(task) = TaskId::parse(id) else { continue };
            let ports = pairs.chunks(2).filter_map(|pair| match pair {
                [port, channels] => {
                    let channels: Vec<String> = serde_json::from_str(channels).ok()?;
                    let port = PortName::parse(port).ok().filter(|port| !port.is_template())?;
                    let listens = channels.iter().any(|of| of == channel.as_str());
                    listens.then_some(PortAddress { task, direction: PortDirection::In, port })
                }
                _ => None,
            });
            let before = all.len();
            all.extend(ports);
            if all.len() == before {
                self.direct.put(DirectChange::LeaveChannel(channel.clone(), task), ());
            }
        }
        let first = PortAddress { task: TaskId::FIRST, direction: PortDirection::In, port: PortName::first() };
        let changed = self.listening.range((channel.clone(), first)..).take_while(|((of, _), _)| of == channel);
        for ((_, port), listens) in changed {
            match listens {
                true => all.insert(port.clone()),
                false => all.remove(port),
            };
        }
        for port in &all {
            // A caller that lists subscribers writes to them next, which wakes their tasks.
            if self.tasks.get(&port.task).is_none() {
                self.facts.want(TaskFact::Task(port.task));
                self.facts.want(TaskFact::Ports(port.task, port.direction));
                self.facts.want(TaskFact::Subscribers(Channel::of_task(port.task)));
            }
        }
        Ok(all.into_iter().collect())
    }

    fn has_subscribers(&mut self, channels: &[Channel]) -> RowResult<bool> {
        let mut is_received = false;
        // All of them, so that one request loads what is missing.
        for channel in channels {
            is_received |= !self.subscribers(channel)?.is_empty();
        }
        Ok(is_received)
    }

    fn has_class(&mut self, queue: &QueueName, class: &ClassName) -> RowResult<bool> {
        if let Some(changed) = self.classes.get(&(queue.clone(), class.clone())) {
            return Ok(changed.is_some());
        }
        let values = self.fact(&TaskFact::Classes(queue.clone()));
        Ok(values.is_some_and(|values| values.iter().step_by(2).any(|name| name == class.as_str().as_bytes())))
    }

    fn class(&mut self, queue: &QueueName, class: &ClassName) -> RowResult<Option<ClassConfig>> {
        if let Some(changed) = self.classes.get(&(queue.clone(), class.clone())) {
            return Ok(changed.clone());
        }
        let stored = self.fact_pairs(&TaskFact::Classes(queue.clone()))?;
        let stored = stored.into_iter().find(|(name, _)| name == class.as_str());
        stored.map(|(_, text)| parse_class(queue, &text)).transpose()
    }

    fn classes(&mut self, queue: &QueueName) -> RowResult<Vec<(ClassName, ClassConfig)>> {
        let mut all = BTreeMap::new();
        for (name, text) in self.fact_pairs(&TaskFact::Classes(queue.clone()))? {
            let name = ClassName::parse(&name)
                .map_err(|error| RedisTaskError::damaged(&format!("workers:{queue}"), &error))?;
            all.insert(name, parse_class(queue, &text)?);
        }
        for ((_, class), config) in self.classes.iter().filter(|((of, _), _)| of == queue) {
            match config {
                Some(config) => all.insert(class.clone(), config.clone()),
                None => all.remove(class),
            };
        }
        Ok(all.into_iter().collect())
    }

    fn put_class(&mut self, queue: &QueueName, class: &ClassName, config: &ClassConfig) -> RowResult<()> {
        self.classes.put((queue.clone(), class.clone()), Some(config.clone()));
        Ok(())
    }

    fn delete_class(&mut self, queue: &QueueName, class: &ClassName) -> RowResult<()> {
        self.classes.put((queue.clone(), class.clone()), None);
        Ok(())
    }

    fn first_ready(&mut self, queue: &QueueName, class: &ClassName) -> RowResult<Option<(u64, TaskId)>> {
        self.first_ready_entry(queue, class)
    }

    fn due(&mut self, until: Instant, limit: usize) -> RowResult<Vec<TaskId>> {
        let mut due = Vec::new();
        for set in DueSet::ALL {
            due.extend(self.due_tasks(set, until, limit)?);
        }
        Ok(due)
    }

    fn expired(&mut self, until: Instant, limit: usize) -> RowResult<Vec<TaskId>> {
        let mut expired = Vec::new();
        for text in self.fact_texts(&TaskFact::Expired(seconds_text(until), limit))? {
            let Ok(id) = TaskId::parse(&text) else { continue };
            // A damaged task does not stop the others.
            match self.task(id).ok().flatten().map(|task| task.lease) {
                Some(Some(lease)) if lease.until <= until => expired.push(id),
                Some(Some(_)) => {}
                // Other clients have removed the task, or it is damaged.
                Some(None) | None => self.add_key_command("ZREM", "cronhold:steps", &[&text]),
            }
        }
        Ok(expired)
    }

    fn once(&mut self, key: &str) -> RowResult<Option<OnceRecord>> {
        if let Some(changed) = self.once.get(&key.to_owned()) {
            return Ok(Some(changed.clone()));
        }
        let Some(text) = self.fact_text(&TaskFact::Once(key.to_owned()))? else { return Ok(None) };
        let damaged = || RedisTaskError::damaged(&format!("cronhold:once:{key}"), &"it is not a list of numbers");
        let numbers: Vec<i64> = serde_json::from_str(&text).map_err(|_| damaged())?;
        let (expires_at, created) = numbers.split_first().ok_or_else(damaged)?;
        let created = created.iter().filter_map(|id| TaskId::new(id.cast_unsigned())).collect();
        Ok(Some(OnceRecord { expires_at: Instant::from_micros(*expires_at), created }))
    }

    fn put_once(&mut self, key: &str, record: &OnceRecord) -> RowResult<()> {
        self.once.put(key.to_owned(), record.clone());
        Ok(())
    }

    /// Redis expires the keys.
    fn expire_once(&mut self, _until: Instant, _limit: usize) -> RowResult<()> {
        Ok(())
    }

    fn process(&mut self, id: &ProcessId) -> RowResult<Option<WorkerProcess>> {
        if let Some(changed) = self.processes.get(id) {
            return Ok(changed.clone());
        }
        let values = self.fact_texts(&TaskFact::Process(id.clone()))?;
        let Some((text, signals)) = values.split_first().filter(|(text, _)| !text.is_empty()) else { return Ok(None) };
        let mut process = process_of_text(id, text)?;
        // The first signal is the last element.
        process.signals = signals.iter().rev().filter_map(|text| signal_of_text(text)).collect();
        Ok(Some(process))
    }

    fn processes(&mut self) -> RowResult<Vec<WorkerProcess>> {
        let mut all = BTreeMap::new();
        for (id, text) in self.fact_pairs(&TaskFact::Processes)? {
            let id = ProcessId::new(&id);
            all.insert(id.clone(), process_of_text(&id, &text)?);
        }
        for (id, process) in self.processes.iter() {
            match process {
                Some(process) => all.insert(id.clone(), process.clone()),
                None => all.remove(id),
            };
        }
        Ok(all.into_values().collect())
    }

    fn put_process(&mut self, process: &WorkerProcess) -> RowResult<()> {
        // Its signals are stored apart from its record.
        self.process(&process.id)?;
        self.processes.put(process.id.clone(), Some(process.clone()));
        Ok(())
    }

    fn delete_process(&mut self, id: &ProcessId) -> RowResult<()> {
        self.processes.put(id.clone(), None);
        Ok(())
    }
}

impl TaskRowSet {
    /// Notes which channels a port leaves and joins.
    fn change_listening(&mut self, port: &PortAddress, before: &[Channel], after: &[Channel]) {
        if port.direction == PortDirection::Out || port.port.is_template() {
            return;
        }
        for channel in before.iter().filter(|channel| !after.contains(channel)) {
            self.listening.put((channel.clone(), port.clone()), false);
        }
        for channel in after.iter().filter(|channel| !before.contains(channel)) {
            self.listening.put((channel.clone(), port.clone()), true);
        }
    }
}

fn parse_class(queue: &QueueName, text: &str) -> RowResult<ClassConfig> {
    ClassConfig::parse(text).map_err(|error| RedisTaskError::damaged(&format!("workers:{queue}"), &error))
}
