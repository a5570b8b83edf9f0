//! Changes ports and their items.

use cronhold_core::task::limits::{MOVED_ITEMS_MAX, PORT_CHANNELS_MAX, PORTS_MAX, UNIT_BYTES_MAX};
use cronhold_core::task::log::PortLog;
use cronhold_core::task::port::{distinct, merged_ports};
use cronhold_core::task::{
    ActOutcome, Channel, ClassConfig, PortAddress, PortDirection, PortItem, PortMap, PortName, TaskRecord, TaskRefusal,
};

use super::super::rows::{PortRecord, TaskRows};
use super::UnitExecutor;
use super::publish::OutgoingMessage;

impl<R: TaskRows> UnitExecutor<'_, R> {
    /// A port that is used: it exists, or the template of its task creates it with the options of the template.
    pub(super) fn open_port(&mut self, address: &PortAddress) -> Result<PortRecord, R::Error> {
        if address.port.is_template() {
            return Err(TaskRefusal::TemplatePort(address.port.clone()).into());
        }
        if let Some(record) = self.rows.port(address)? {
            return Ok(record);
        }
        self.task(address.task)?;
        let template = PortAddress { port: PortName::template(), ..address.clone() };
        let Some(options) = self.rows.port(&template)? else {
            return Err(TaskRefusal::UnknownPort(address.clone()).into());
        };
        let found = self.rows.ports(address.task, address.direction)?.len();
        if found >= PORTS_MAX {
            return Err(TaskRefusal::TooLarge { what: "ports", found, limit: PORTS_MAX }.into());
        }
        let first = self.first_position();
        let record = PortRecord { first, next: first, ..options };
        self.rows.put_port(address, &record)?;
        Ok(record)
    }

    /// Takes the items that a step has read.
    pub(super) fn take_items(&mut self, address: &PortAddress, position: u64, count: u64) -> Result<(), R::Error> {
        let taken = || TaskRefusal::ItemsTaken(address.clone());
        let mut port = match self.open_port(address) {
            // The step has read from it, so it was removed meanwhile.
            Err(_) if count > 0 && self.rows.port(address)?.is_none() && self.rows.task(address.task)?.is_some() => {
                return Err(taken().into());
            }
            opened => opened?,
        };
        if count > 0 && (port.first != position || port.size() < count) {
            return Err(taken().into());
        }
        self.drop_items(address, &mut port, count)
    }

    /// Takes items, whichever are there. At most 100,000 and about 16 MiB are taken at once.
    pub(super) fn pop_items(
        &mut self,
        address: &PortAddress,
        count: u64,
        or_default: bool,
    ) -> Result<Vec<PortItem>, R::Error> {
        let mut port = self.open_port(address)?;
        let items = match port.size() {
            0 => port.default.filter(|_| or_default).into_iter().collect(),
            size => {
                let count = count.min(size).min(MOVED_ITEMS_MAX as u64);
                let items = self.read_items(address, port.first, count)?;
                self.drop_items(address, &mut port, items.len() as u64)?;
                items
            }
        };
        if let Some(log) = &mut self.log {
            log.add_read_items(address, &items);
        }
        Ok(items)
    }

    /// Appends items without any further effect.
    pub(super) fn append_items(&mut self, address: &PortAddress, items: &[PortItem]) -> Result<(), R::Error> {
        let mut port = self.open_port(address)?;
        for item in items {
            self.rows.put_item(address, port.next, item)?;
            port.next += 1;
        }
        self.rows.put_bounds(address, &port)
    }

    /// Sets or clears the default without any further effect.
    pub(super) fn set_default(&mut self, address: &PortAddress, default: Option<PortItem>) -> Result<(), R::Error> {
        let port = self.open_port(address)?;
        self.rows.put_port(address, &PortRecord { default, ..port })
    }

    pub(super) fn set_channels(&mut self, address: &PortAddress, channels: &[Channel]) -> Result<(), R::Error> {
        let channels = distinct(channels.to_vec());
        if channels.len() > PORT_CHANNELS_MAX {
            let (what, found) = ("channels of a port", channels.len());
            return Err(TaskRefusal::TooLarge { what, found, limit: PORT_CHANNELS_MAX }.into());
        }
        let port = self.open_port(address)?;
        self.rows.put_port(address, &PortRecord { channels, ..port })
    }

    /// Writes items or a default, runs the task that reads them, and publishes what an out port has.
    pub(super) fn write_port(
        &mut self,
        address: &PortAddress,
        items: &[PortItem],
        as_default: bool,
        notify: bool,
    ) -> Result<(), R::Error> {
        match as_default {
            true => self.set_default(address, items.last().cloned())?,
            false => self.append_items(address, items)?,
        }
        if let Some(log) = &mut self.log {
            log.add_written_items(address, items);
        }
        if notify {
            self.notify_port(address)?;
        }
        self.publish_port(address, items)
    }

    /// Requests a step of the task that reads a port: its own for an in port, the parent for an out port.
    fn notify_port(&mut self, address: &PortAddress) -> Result<(), R::Error> {
        let task = self.task(address.task)?;
        match address.direction {
            PortDirection::In => self.request_step(task, false, None)?,
            PortDirection::Out => self.request_parent_step(&task, false, None)?,
        };
        Ok(())
    }

    /// Publishes items on the channels of an out port.
    fn publish_port(&mut self, address: &PortAddress, items: &[PortItem]) -> Result<(), R::Error> {
        if address.direction == PortDirection::In {
            return Ok(());
        }
        let port = self.open_port(address)?;
        for item in items {
            for channel in &port.channels {
                self.outbox.push_back(OutgoingMessage::new(channel.clone(), item.data.clone()));
            }
        }
        Ok(())
    }

    /// Replaces the ports of a task by those of its class and the given ones. Ports that remain keep their items.
    pub(super) fn set_ports(
        &mut self,
        task: &TaskRecord,
        direction: PortDirection,
        given: &PortMap,
    ) -> Result<(), R::Error> {
        let config = self.rows.class(&task.queue, &task.class)?.unwrap_or_else(ClassConfig::empty);
        let class = match direction {
            PortDirection::In => &config.inports,
            PortDirection::Out => &config.outports,
        };
        let ports = merged_ports(class, given);
        if ports.len() > PORTS_MAX {
            return Err(TaskRefusal::TooLarge { what: "ports", found: ports.len(), limit: PORTS_MAX }.into());
        }
        let address = |port: &PortName| PortAddress { task: task.id, direction, port: port.clone() };
        let known = self.rows.ports(task.id, direction)?;
        for (name, record) in known.iter().filter(|(name, _)| !ports.contains_key(name)) {
            self.rows.delete_items(&address(name), record.first, record.next)?;
            self.rows.delete_port(&address(name))?;
        }
        for (name, options) in ports {
            let bounds = known.iter().find(|(known, _)| *known == name).map(|(_, record)| (record.first, record.next));
            let (first, next) = bounds.unwrap_or_else(|| (self.first_position(), self.first_position()));
            let default = options.default.map(|data| self.item(data));
            self.rows.put_port(&address(&name), &PortRecord { default, channels: options.channels, first, next })?;
        }
        Ok(())
    }

    /// Moves all items of a port to others, each of which gets all of them, and copies the default.
    pub(super) fn connect_ports(&mut self, from: &PortAddress, to: &[PortAddress]) -> Result<ActOutcome, R::Error> {
        let mut source = self.open_port(from)?;
        let targets = to.len().max(1);
        let found = usize::try_from(source.size()).unwrap_or(usize::MAX).saturating_mul(targets);
        if found > MOVED_ITEMS_MAX {
            return Err(TaskRefusal::TooLarge { what: "items to move", found, limit: MOVED_ITEMS_MAX }.into());
        }
        let items = self.read_items(from, source.first, source.size())?;
        let count = source.size();
        let bytes = |item: &PortItem| item.data.as_str().len() + item.label_bytes();
        let found = targets * items.iter().map(bytes).sum::<usize>();
        if (items.len() as u64) < count || found > UNIT_BYTES_MAX {
            let (what, limit) = ("bytes of items to move", UNIT_BYTES_MAX);
            return Err(TaskRefusal::TooLarge { what, found, limit }.into());
        }
        self.drop_items(from, &mut source, count)?;
        self.log_connection(from, to, &items)?;
        for target in to {
            let known = self.open_port(target)?.default;
            let default = source.default.clone().filter(|default| known.as_ref() != Some(default));
            if items.is_empty() && default.is_none() {
                continue;
            }
            self.append_items(target, &items)?;
            if default.is_some() {
                self.set_default(target, default)?;
            }
            self.notify_port(target)?;
            self.publish_port(target, &items)?;
        }
        Ok(ActOutcome::Items(items))
    }

    /// The position of the first item of a new port. It depends on the time, so that a port that is removed and added
    /// again does not use a position twice while a step knows it.
    fn first_position(&self) -> u64 {
        self.context.now.micros().max(0).cast_unsigned()
    }

    /// Logs items that were moved, in an entry of their own.
    fn log_connection(&mut self, from: &PortAddress, to: &[PortAddress], items: &[PortItem]) -> Result<(), R::Error> {
        if items.is_empty() || !self.has_receivers(&Channel::log())? {
            return Ok(());
        }
        let mut log = PortLog::default();
        items.iter().for_each(|item| log.add_read(from, item.data.clone()));
        for target in to {
            items.iter().for_each(|item| log.add_write(target, item.data.clone()));
        }
        self.publish_log(&log);
        Ok(())
    }

    /// Reads items up to the one that exceeds the bytes of a unit.
    fn read_items(&mut self, address: &PortAddress, first: u64, count: u64) -> Result<Vec<PortItem>, R::Error> {
        let limit = usize::try_from(count).unwrap_or(usize::MAX);
        self.rows.items(address, first, limit, UNIT_BYTES_MAX)
    }

    /// Removes the first items. A port that becomes empty counts its positions on, so that a position never means two
    /// items.
    fn drop_items(&mut self, address: &PortAddress, port: &mut PortRecord, count: u64) -> Result<(), R::Error> {
        self.rows.delete_items(address, port.first, port.first + count)?;
        port.first += count;
        self.rows.put_bounds(address, port)
    }
}
