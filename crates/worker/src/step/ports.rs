//! Reads and writes of ports, typed by serde.

use cronhold_core::task::{
    JsonObject, JsonText, PortAddress, PortDirection, PortItem, PortName, PortTarget, TaskAct, TaskRefusal, TaskTarget,
};
use cronhold_store::tasks::{PortWindow, WindowLimits};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::TaskStep;
use super::buffer::PortBuffer;
use crate::worker::{StepResult, StepStop};

impl TaskStep<'_> {
    /// Reads a value of an in port, or its default; `None` if there is neither.
    pub fn read<T: DeserializeOwned>(&mut self, port: &str) -> StepResult<Option<T>> {
        let address = self.inport(port)?;
        let value = self.read_value(&address)?;
        Ok(value.map(|value| value.to()).transpose()?)
    }

    /// Reads all items of an in port; never its default. A step that writes something for each of them can exceed what
    /// one unit can change; [`TaskStep::for_inputs`] takes as many as fit.
    pub fn read_all<T: DeserializeOwned>(&mut self, port: &str) -> StepResult<Vec<T>> {
        let address = self.inport(port)?;
        let mut values = Vec::new();
        while let Some(value) = self.read_item(&address)? {
            values.push(value.to()?);
        }
        Ok(values)
    }

    /// Items of an in port that the step has not read. Those that came after the step began are not counted: they
    /// request another step.
    pub fn size(&mut self, port: &str) -> StepResult<u64> {
        let address = self.inport(port)?;
        Ok(self.buffer(&address)?.left())
    }

    /// Whether a read of an in port returns something.
    pub fn has_value(&mut self, port: &str) -> StepResult<bool> {
        let address = self.inport(port)?;
        let buffer = self.buffer(&address)?;
        Ok(buffer.left() > 0 || buffer.default.is_some())
    }

    /// Writes a value to an out port. The parent makes a step, and the channels of the port get a message.
    pub fn write(&mut self, port: &str, value: &(impl Serialize + ?Sized)) -> StepResult {
        let (port, value) = (PortName::parse(port)?, JsonText::of(value)?);
        let task = TaskTarget::Id(self.id());
        self.write_value(PortTarget { task, direction: PortDirection::Out, port }, value);
        Ok(())
    }

    /// Writes a value to an in port of the task itself, which reads it in another step.
    pub fn write_back(&mut self, port: &str, value: &(impl Serialize + ?Sized)) -> StepResult {
        let (port, value) = (PortName::parse(port)?, JsonText::of(value)?);
        let task = TaskTarget::Id(self.id());
        self.write_value(PortTarget { task, direction: PortDirection::In, port }, value);
        Ok(())
    }

    pub(crate) fn write_value(&mut self, port: PortTarget, value: JsonText) {
        if let TaskTarget::Id(task) = port.task
            && !self.group.is_silent
            && self.counts_for_log()
        {
            let address = PortAddress { task, direction: port.direction, port: port.port.clone() };
            self.log.add_write(&address, value.clone());
        }
        let mut item = PortItem::new(value).with_context(self.context.clone());
        if self.group.is_silent {
            item = item.with_options(JsonObject::new().with("log", JsonText::of_bool(false)));
        }
        let notify = !self.group.is_unnoticed;
        let as_default = self.writes_defaults && port.direction == PortDirection::Out;
        self.acts.push(TaskAct::Write { port, items: vec![item], as_default, notify });
    }

    pub(crate) fn inport(&self, port: &str) -> StepResult<PortAddress> {
        Ok(PortAddress { task: self.id(), direction: PortDirection::In, port: PortName::parse(port)? })
    }

    /// Reads an item or the default.
    pub(crate) fn read_value(&mut self, port: &PortAddress) -> StepResult<Option<JsonText>> {
        if let Some(value) = self.read_item(port)? {
            return Ok(Some(value));
        }
        let default = self.buffer(port)?.default.clone();
        if let Some(default) = &default
            && self.counts_for_log()
        {
            self.log.add_read(port, default.data.clone());
        }
        Ok(default.map(|default| default.data))
    }

    /// Reads an item, which is loaded if it has to be.
    pub(crate) fn read_item(&mut self, port: &PortAddress) -> StepResult<Option<JsonText>> {
        if let Some(from) = self.buffer(port)?.missing_from() {
            let page = self.load(self.store.items(port, from, &WindowLimits::ITEMS))?;
            match page.filter(|page| page.position == from && !page.items.is_empty()) {
                Some(page) => self.buffer(port)?.add(page.items),
                None => return Err(StepStop::Repeated(TaskRefusal::ItemsTaken(port.clone()).to_string())),
            }
        }
        let Some(item) = self.buffer(port)?.take() else { return Ok(None) };
        if self.counts_for_log() {
            self.log.add_read_items(port, std::slice::from_ref(&item));
        }
        Ok(Some(item.data))
    }

    /// The loaded part of a port.
    pub(crate) fn buffer(&mut self, port: &PortAddress) -> StepResult<&mut PortBuffer> {
        if !self.buffers.contains_key(port) {
            let buffer = self.open_buffer(port)?;
            self.buffers.insert(port.clone(), buffer);
        }
        Ok(self.buffers.get_mut(port).expect("it was inserted"))
    }

    fn open_buffer(&self, port: &PortAddress) -> StepResult<PortBuffer> {
        let of_name = |windows: &[PortWindow]| windows.iter().find(|window| window.name == port.port).cloned();
        let (known, has_template) = match (port.task == self.id(), port.direction) {
            (true, PortDirection::In) => (of_name(&self.window.inports), self.window.has_inport_template),
            (true, PortDirection::Out) => (of_name(&self.window.outports), self.window.has_outport_template),
            (false, _) => {
                let child = self.window.children.iter().find(|child| child.task == port.task);
                (child.and_then(|child| of_name(&child.outports)), false)
            }
        };
        if let Some(window) = known {
            return Ok(PortBuffer::new(window));
        }
        if let Some(window) = self.load(self.store.items(port, 0, &WindowLimits::STEP))? {
            return Ok(PortBuffer::new(window));
        }
        let template = PortAddress { port: PortName::template(), ..port.clone() };
        let options = self.load(self.store.items(&template, 0, &WindowLimits::STEP))?;
        match options.filter(|_| has_template || port.task != self.id()) {
            Some(options) => Ok(PortBuffer::on_demand(options.default)),
            None => Err(TaskRefusal::UnknownPort(port.clone()).into()),
        }
    }
}
