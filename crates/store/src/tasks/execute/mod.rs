//! Carries out units, leases and registrations on rows. Every store with rows uses this code within a transaction of its
//! own, and rolls the transaction back if it returns an error.
//!
//! In reading order: [`step`] carries out a unit and ends its step; `acts` has one branch for each act; `ports`, `tree`,
//! `wake` and `create` change what the acts are about; `publish` delivers messages; [`lease`] leases steps, and
//! [`registry`] keeps worker processes and their classes.

mod acts;
mod create;
pub mod lease;
mod ports;
mod publish;
pub mod registry;
pub mod step;
mod tree;
mod wake;

use std::collections::{BTreeSet, VecDeque};

use cronhold_core::task::log::{PortLog, error_entry};
use cronhold_core::task::{
    Channel, JsonObject, JsonText, PortAddress, PortItem, PortTarget, QueueName, TaskId, TaskRecord, TaskRefusal,
    TaskTarget,
};
use cronhold_schedule::Instant;

use self::publish::{DeliveryCount, OutgoingMessage};
use super::port::ChannelMessage;
use super::rows::TaskRows;

/// What a unit is carried out with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecuteContext {
    /// The time of the commit.
    pub now: Instant,
    /// Whether there are listeners to channels, so that messages have to be collected.
    pub has_listeners: bool,
}

/// What has to be notified once the transaction is durable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskEffects {
    /// Queues that have a ready task, or whose next due time may have become earlier.
    pub arrivals: BTreeSet<QueueName>,
    /// Messages for listeners, in order, once for each channel that they reach.
    pub messages: Vec<ChannelMessage>,
}

impl TaskEffects {
    /// Adds the effects of a later change.
    pub fn extend(&mut self, later: Self) {
        self.arrivals.extend(later.arrivals);
        self.messages.extend(later.messages);
    }
}

/// Carries out the changes of one unit.
struct UnitExecutor<'r, R> {
    rows: &'r mut R,
    context: ExecuteContext,
    /// The context of what is written and published.
    item_context: JsonObject,
    /// Tasks that the unit has created, in order.
    created: Vec<TaskId>,
    /// Messages that are delivered after all changes, in order.
    outbox: VecDeque<OutgoingMessage>,
    deliveries: DeliveryCount,
    /// Tasks whose state has got fields.
    changed_states: BTreeSet<TaskId>,
    /// What a request reads and writes, if the log has receivers. Steps log what they do by themselves.
    log: Option<PortLog>,
    effects: TaskEffects,
}

impl<'r, R: TaskRows> UnitExecutor<'r, R> {
    fn new(rows: &'r mut R, context: ExecuteContext, item_context: JsonObject) -> Self {
        Self {
            rows,
            context,
            item_context,
            created: Vec::new(),
            outbox: VecDeque::new(),
            deliveries: DeliveryCount::default(),
            changed_states: BTreeSet::new(),
            log: None,
            effects: TaskEffects::default(),
        }
    }

    /// An executor of what a store does by itself, which is never refused.
    fn of_store(rows: &'r mut R, context: ExecuteContext, item_context: JsonObject) -> Self {
        Self { deliveries: DeliveryCount::of_store(), ..Self::new(rows, context, item_context) }
    }

    /// Delivers what is still to be delivered, and returns what has to be notified.
    fn finish(mut self) -> Result<TaskEffects, R::Error> {
        self.deliver_messages()?;
        Ok(self.effects)
    }

    /// The id of a target.
    fn target(&self, target: TaskTarget) -> Result<TaskId, R::Error> {
        match target {
            TaskTarget::Id(id) => Ok(id),
            TaskTarget::New(index) => {
                self.created.get(index).copied().ok_or_else(|| TaskRefusal::UnknownNewTask(index).into())
            }
        }
    }

    /// A task that must exist.
    fn task(&mut self, id: TaskId) -> Result<TaskRecord, R::Error> {
        self.rows.task(id)?.ok_or_else(|| TaskRefusal::UnknownTask(id).into())
    }

    fn target_task(&mut self, target: TaskTarget) -> Result<TaskRecord, R::Error> {
        let id = self.target(target)?;
        self.task(id)
    }

    fn address(&self, target: &PortTarget) -> Result<PortAddress, R::Error> {
        let task = self.target(target.task)?;
        Ok(PortAddress { task, direction: target.direction, port: target.port.clone() })
    }

    /// An item that is written in the context of the unit.
    fn item(&self, data: JsonText) -> PortItem {
        let item = PortItem::new(data);
        match self.item_context.is_empty() {
            true => item,
            false => item.with_context(self.item_context.clone()),
        }
    }

    /// Logs an error in the context of the unit.
    fn log_error(&mut self, error: &str, backtrace: Option<&str>) {
        let entry = error_entry(&self.item_context, self.context.now, error, backtrace);
        self.outbox.push_back(OutgoingMessage::unlogged(Channel::log(), entry));
    }
}

/// The context of what a store does to a task by itself.
fn context_of_task(task: TaskId) -> JsonObject {
    JsonObject::new().with("job", JsonText::of_number(task.number()))
}
