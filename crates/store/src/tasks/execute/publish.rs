//! Delivers messages to the in ports that listen to a channel or to one above it.

use cronhold_core::task::limits::{DELIVERED_BYTES_MAX, DELIVERIES_MAX};
use cronhold_core::task::log::{PortLog, status_message};
use cronhold_core::task::{Channel, JsonObject, JsonText, PortAddress, PortItem, TaskRecord, TaskRefusal};

use super::super::port::ChannelMessage;
use super::super::rows::TaskRows;
use super::UnitExecutor;

/// A message that is still to be delivered.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    channel: Channel,
    message: JsonText,
    /// Whether the deliveries are logged. Log entries and status changes are not, so that a port that listens to the log
    /// does not cause further entries.
    is_logged: bool,
    /// Whether a delivery has caused it, rather than an act or the store.
    is_caused: bool,
}

/// Counts port writes by messages, and decides which ones are left out.
#[derive(Debug, Default)]
pub(super) struct DeliveryCount {
    /// Whether the store publishes by itself.
    is_of_store: bool,
    /// Whether the present messages are caused by a delivery.
    is_delivering: bool,
    /// Writes by messages of acts and of the store.
    direct: WriteCount,
    /// Writes by messages that were caused by deliveries.
    caused: WriteCount,
    has_left_out: bool,
}

/// Port writes, and the bytes that they write.
#[derive(Debug, Default)]
struct WriteCount {
    writes: usize,
    bytes: usize,
}

impl WriteCount {
    fn add(&mut self, bytes: usize) {
        self.writes += 1;
        self.bytes += bytes;
    }

    /// The limit that is exceeded.
    fn check(&self) -> Result<(), TaskRefusal> {
        for (what, found, limit) in [
            ("port writes caused by messages", self.writes, DELIVERIES_MAX),
            ("bytes of port writes caused by messages", self.bytes, DELIVERED_BYTES_MAX),
        ] {
            if found > limit {
                return Err(TaskRefusal::TooLarge { what, found, limit });
            }
        }
        Ok(())
    }
}

impl DeliveryCount {
    /// For what a store publishes by itself.
    pub(super) fn of_store() -> Self {
        Self { is_of_store: true, ..Self::default() }
    }

    /// Counts a write. Returns false if it is left out.
    fn admits(&mut self, is_caused: bool, bytes: usize) -> Result<bool, TaskRefusal> {
        if is_caused {
            self.caused.add(bytes);
            return Ok(self.caused.check().is_ok());
        }
        self.direct.add(bytes);
        match self.is_of_store {
            true => Ok(true),
            false => self.direct.check().map(|()| true),
        }
    }

    /// Whether a store that does several things in one commit leaves the rest to the next one.
    pub(super) fn is_exceeded(&self) -> bool {
        self.direct.check().is_err()
    }
}

impl OutgoingMessage {
    pub(super) const fn new(channel: Channel, message: JsonText) -> Self {
        Self { channel, message, is_logged: true, is_caused: false }
    }

    pub(super) const fn unlogged(channel: Channel, message: JsonText) -> Self {
        Self { channel, message, is_logged: false, is_caused: false }
    }

    /// An act of a unit. Entries of the log are not logged themselves.
    pub(super) fn of_act(channel: &Channel, message: &JsonText) -> Self {
        match *channel == Channel::log() {
            true => Self::unlogged(channel.clone(), message.clone()),
            false => Self::new(channel.clone(), message.clone()),
        }
    }
}

impl<R: TaskRows> UnitExecutor<'_, R> {
    /// Queues the message about the status of a task, unless its class does not want it.
    pub(super) fn publish_status(&mut self, task: &TaskRecord) -> Result<(), R::Error> {
        let channel = Channel::of_task(task.id);
        if !self.has_receivers(&channel)? {
            return Ok(());
        }
        let config = self.rows.class(&task.queue, &task.class)?;
        if config.is_none_or(|config| config.publishes_status) {
            self.send(OutgoingMessage::unlogged(channel, status_message(task.status)));
        }
        Ok(())
    }

    /// Delivers messages in their order. Deliveries run tasks, which publishes further messages.
    pub(super) fn deliver_messages(&mut self) -> Result<(), R::Error> {
        while let Some(outgoing) = self.outbox.pop_front() {
            let context =
                JsonObject::clone(&self.item_context).with("channel", JsonText::of_text(outgoing.channel.as_str()));
            let bytes = outgoing.message.as_str().len() + context.written_bytes();
            for level in outgoing.channel.levels() {
                if self.context.has_listeners {
                    let message = outgoing.message.clone();
                    self.effects.messages.push(ChannelMessage { channel: level.clone(), message });
                }
                for port in self.rows.subscribers(&level)? {
                    if !self.deliveries.admits(outgoing.is_caused, bytes)? {
                        self.log_left_out();
                        break;
                    }
                    self.deliveries.is_delivering = true;
                    self.deliver(&port, &outgoing, &context)?;
                    self.deliveries.is_delivering = false;
                }
            }
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        port: &PortAddress,
        outgoing: &OutgoingMessage,
        context: &JsonObject,
    ) -> Result<(), R::Error> {
        let item = PortItem::new(outgoing.message.clone()).with_context(context.clone());
        let item = match outgoing.is_logged {
            true => item,
            false => item.with_options(JsonObject::new().with("log", JsonText::parse("false").expect("JSON"))),
        };
        self.append_items(port, &[item])?;
        let task = self.task(port.task)?;
        self.request_step(task, false, None)?;
        if outgoing.is_logged && self.has_receivers(&Channel::log())? {
            let mut log = PortLog::default();
            log.add_write(port, outgoing.message.clone());
            if let Some(entry) = log.to_entry(context, self.context.now) {
                self.send(OutgoingMessage::unlogged(Channel::log(), entry));
            }
        }
        Ok(())
    }

    /// Queues a message of the store.
    fn send(&mut self, message: OutgoingMessage) {
        let is_caused = self.deliveries.is_delivering;
        self.outbox.push_back(OutgoingMessage { is_caused, ..message });
    }

    /// Logs once that messages are left out.
    fn log_left_out(&mut self) {
        if !std::mem::replace(&mut self.deliveries.has_left_out, true) {
            let writes = self.deliveries.caused.writes - 1;
            let text = format!("messages about deliveries were left out after {writes} port writes");
            self.log_error(&text, None);
        }
    }

    /// Publishes what was read and written together.
    pub(super) fn publish_log(&mut self, log: &PortLog) {
        if let Some(entry) = log.to_entry(&self.item_context, self.context.now) {
            self.outbox.push_back(OutgoingMessage::unlogged(Channel::log(), entry));
        }
    }

    /// Whether a message on this channel has receivers.
    pub(super) fn has_receivers(&mut self, channel: &Channel) -> Result<bool, R::Error> {
        if self.context.has_listeners {
            return Ok(true);
        }
        self.rows.has_subscribers(&channel.levels())
    }
}
