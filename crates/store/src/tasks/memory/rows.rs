//! The rows of the reference store.

use std::ops::Bound;

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, JsonText, PortAddress, PortDirection, PortItem, PortName, QueueName,
    StateField, TaskAlias, TaskId, TaskRecord, TaskRefusal,
};
use cronhold_schedule::Instant;

use super::super::process::{ProcessId, WorkerProcess};
use super::super::rows::{OnceRecord, PortRecord, TaskCounter, TaskRows};
use super::tables::{TableChange, TaskTables};

impl TaskRows for TaskTables {
    type Error = TaskRefusal;

    fn next_number(&mut self, counter: TaskCounter) -> Result<u64, TaskRefusal> {
        let next = self.number(counter)? + 1;
        self.change(TableChange::Counter(counter, Some(next)));
        Ok(next)
    }

    fn number(&mut self, counter: TaskCounter) -> Result<u64, TaskRefusal> {
        Ok(self.counters.get(&counter).copied().unwrap_or(0))
    }

    fn task(&mut self, id: TaskId) -> Result<Option<TaskRecord>, TaskRefusal> {
        Ok(self.tasks.get(&id).cloned())
    }

    fn insert_task(&mut self, task: &TaskRecord) -> Result<(), TaskRefusal> {
        self.put_task(task)
    }

    fn put_task(&mut self, task: &TaskRecord) -> Result<(), TaskRefusal> {
        self.change(TableChange::Task(task.id, Some(Box::new(task.clone()))));
        Ok(())
    }

    fn delete_task(&mut self, id: TaskId) -> Result<(), TaskRefusal> {
        self.change(TableChange::Task(id, None));
        Ok(())
    }

    fn child(&mut self, parent: TaskId, name: &ChildName) -> Result<Option<TaskId>, TaskRefusal> {
        Ok(self.children.get(&(parent, name.clone())).copied())
    }

    fn children(
        &mut self,
        parent: TaskId,
        after: Option<&ChildName>,
        limit: usize,
    ) -> Result<Vec<(ChildName, TaskId)>, TaskRefusal> {
        let from = match after {
            Some(after) => Bound::Excluded((parent, after.clone())),
            None => Bound::Included((parent, ChildName::first())),
        };
        let of_parent = self.children.range((from, Bound::Unbounded)).take_while(|((of, _), _)| *of == parent);
        Ok(of_parent.take(limit).map(|((_, name), id)| (name.clone(), *id)).collect())
    }

    fn alias(&mut self, alias: &TaskAlias) -> Result<Option<TaskId>, TaskRefusal> {
        Ok(self.aliases.get(alias).copied())
    }

    fn aliases(&mut self, task: TaskId) -> Result<Vec<TaskAlias>, TaskRefusal> {
        let of_task = self.aliases_by_task.range((task, TaskAlias::first())..).take_while(|(of, _)| *of == task);
        Ok(of_task.map(|(_, alias)| alias.clone()).collect())
    }

    fn put_alias(&mut self, alias: &TaskAlias, task: TaskId) -> Result<(), TaskRefusal> {
        self.change(TableChange::Alias(alias.clone(), Some(task)));
        Ok(())
    }

    fn delete_alias(&mut self, alias: &TaskAlias) -> Result<(), TaskRefusal> {
        self.change(TableChange::Alias(alias.clone(), None));
        Ok(())
    }

    fn state(&mut self, task: TaskId) -> Result<Vec<(StateField, JsonText)>, TaskRefusal> {
        let fields = self.state.range((task, StateField::first())..).take_while(|((of, _), _)| *of == task);
        Ok(fields.map(|((_, field), value)| (field.clone(), value.clone())).collect())
    }

    fn state_size(&mut self, task: TaskId) -> Result<(usize, usize), TaskRefusal> {
        let fields = self.state(task)?;
        Ok((fields.len(), fields.iter().map(|(field, value)| field.as_str().len() + value.as_str().len()).sum()))
    }

    fn put_state(&mut self, task: TaskId, field: &StateField, value: &JsonText) -> Result<(), TaskRefusal> {
        self.change(TableChange::State((task, field.clone()), Some(value.clone())));
        Ok(())
    }

    fn delete_state(&mut self, task: TaskId, field: &StateField) -> Result<(), TaskRefusal> {
        self.change(TableChange::State((task, field.clone()), None));
        Ok(())
    }

    fn port(&mut self, port: &PortAddress) -> Result<Option<PortRecord>, TaskRefusal> {
        Ok(self.ports.get(port).cloned())
    }

    fn ports(&mut self, task: TaskId, direction: PortDirection) -> Result<Vec<(PortName, PortRecord)>, TaskRefusal> {
        let first = PortAddress { task, direction, port: PortName::first() };
        let of_task =
            self.ports.range(first..).take_while(|(port, _)| port.task == task && port.direction == direction);
        Ok(of_task.map(|(port, record)| (port.port.clone(), record.clone())).collect())
    }

    fn put_port(&mut self, port: &PortAddress, record: &PortRecord) -> Result<(), TaskRefusal> {
        self.change(TableChange::Port(port.clone(), Some(record.clone())));
        Ok(())
    }

    fn put_bounds(&mut self, port: &PortAddress, record: &PortRecord) -> Result<(), TaskRefusal> {
        self.put_port(port, record)
    }

    fn delete_port(&mut self, port: &PortAddress) -> Result<(), TaskRefusal> {
        self.change(TableChange::Port(port.clone(), None));
        Ok(())
    }

    fn items(
        &mut self,
        port: &PortAddress,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<PortItem>, TaskRefusal> {
        let (mut found, mut read) = (Vec::new(), 0);
        let items = self.items.range((port.clone(), from)..).take_while(|((of, _), _)| of == port);
        for (_, item) in items.take(limit) {
            read += item.data.as_str().len();
            found.push(item.clone());
            if read > bytes {
                break;
            }
        }
        Ok(found)
    }

    fn put_item(&mut self, port: &PortAddress, position: u64, item: &PortItem) -> Result<(), TaskRefusal> {
        self.change(TableChange::Item((port.clone(), position), Some(item.clone())));
        Ok(())
    }

    fn delete_items(&mut self, port: &PortAddress, from: u64, to: u64) -> Result<(), TaskRefusal> {
        for position in from..to {
            self.change(TableChange::Item((port.clone(), position), None));
        }
        Ok(())
    }

    fn subscribers(&mut self, channel: &Channel) -> Result<Vec<PortAddress>, TaskRefusal> {
        let first = PortAddress { task: TaskId::FIRST, direction: PortDirection::In, port: PortName::first() };
        let ports = self.subscribers.range((channel.clone(), first)..).take_while(|(of, _)| of == channel);
        Ok(ports.map(|(_, port)| port.clone()).collect())
    }

    fn has_subscribers(&mut self, channels: &[Channel]) -> Result<bool, TaskRefusal> {
        let first = PortAddress { task: TaskId::FIRST, direction: PortDirection::In, port: PortName::first() };
        let is_received = |channel: &Channel| {
            let mut ports = self.subscribers.range((channel.clone(), first.clone())..);
            ports.next().is_some_and(|(of, _)| of == channel)
        };
        Ok(channels.iter().any(is_received))
    }

    fn has_class(&mut self, queue: &QueueName, class: &ClassName) -> Result<bool, TaskRefusal> {
        Ok(self.classes.contains_key(&(queue.clone(), class.clone())))
    }

    fn class(&mut self, queue: &QueueName, class: &ClassName) -> Result<Option<ClassConfig>, TaskRefusal> {
        Ok(self.classes.get(&(queue.clone(), class.clone())).cloned())
    }

    fn classes(&mut self, queue: &QueueName) -> Result<Vec<(ClassName, ClassConfig)>, TaskRefusal> {
        let classes = self.classes.iter().filter(|((of, _), _)| of == queue);
        Ok(classes.map(|((_, class), config)| (class.clone(), config.clone())).collect())
    }

    fn put_class(&mut self, queue: &QueueName, class: &ClassName, config: &ClassConfig) -> Result<(), TaskRefusal> {
        self.change(TableChange::Class((queue.clone(), class.clone()), Some(Box::new(config.clone()))));
        Ok(())
    }

    fn delete_class(&mut self, queue: &QueueName, class: &ClassName) -> Result<(), TaskRefusal> {
        self.change(TableChange::Class((queue.clone(), class.clone()), None));
        Ok(())
    }

    fn first_ready(&mut self, queue: &QueueName, class: &ClassName) -> Result<Option<(u64, TaskId)>, TaskRefusal> {
        let mut ready = self.ready.range((queue.clone(), class.clone(), 0)..);
        let first = ready.next().filter(|((of, name, _), _)| of == queue && name == class);
        Ok(first.map(|((_, _, entry), id)| (*entry, *id)))
    }

    fn due(&mut self, until: Instant, limit: usize) -> Result<Vec<TaskId>, TaskRefusal> {
        Ok(self.due.iter().take_while(|(at, _)| *at <= until).take(limit).map(|(_, id)| *id).collect())
    }

    fn expired(&mut self, until: Instant, limit: usize) -> Result<Vec<TaskId>, TaskRefusal> {
        Ok(self.leases.iter().take_while(|(at, _)| *at <= until).take(limit).map(|(_, id)| *id).collect())
    }

    fn once(&mut self, key: &str) -> Result<Option<OnceRecord>, TaskRefusal> {
        Ok(self.once.get(key).cloned())
    }

    fn put_once(&mut self, key: &str, record: &OnceRecord) -> Result<(), TaskRefusal> {
        self.change(TableChange::Once(key.to_owned(), Some(record.clone())));
        Ok(())
    }

    fn expire_once(&mut self, until: Instant, limit: usize) -> Result<(), TaskRefusal> {
        let expired = self.once.iter().filter(|(_, record)| record.expires_at <= until).take(limit);
        let keys: Vec<String> = expired.map(|(key, _)| key.clone()).collect();
        keys.into_iter().for_each(|key| self.change(TableChange::Once(key, None)));
        Ok(())
    }

    fn process(&mut self, id: &ProcessId) -> Result<Option<WorkerProcess>, TaskRefusal> {
        Ok(self.processes.get(id).cloned())
    }

    fn processes(&mut self) -> Result<Vec<WorkerProcess>, TaskRefusal> {
        Ok(self.processes.values().cloned().collect())
    }

    fn put_process(&mut self, process: &WorkerProcess) -> Result<(), TaskRefusal> {
        self.change(TableChange::Process(process.id.clone(), Some(Box::new(process.clone()))));
        Ok(())
    }

    fn delete_process(&mut self, id: &ProcessId) -> Result<(), TaskRefusal> {
        self.change(TableChange::Process(id.clone(), None));
        Ok(())
    }
}
