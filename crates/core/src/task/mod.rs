//! Tasks: durable units of dataflow work. A task has in ports and out ports, which hold lists of JSON values; a worker
//! makes steps, each of which reads, writes and changes state in one commit.
//!
//! In reading order: [`name`] has the ids and names; [`status`] has the statuses and the table of what changes them;
//! [`json`] and [`item`] have values; [`port`], [`channel`] and [`class`] have ports and what configures them;
//! [`for_inputs`] decides what a worker reads together; [`record`] has what a store keeps, [`unit`] what changes it, and
//! [`refusal`] why not; [`log`] has what is published about it, and [`run_channels`] who hears about runs.

pub mod channel;
pub mod class;
pub mod for_inputs;
pub mod item;
pub mod json;
pub mod limits;
pub mod log;
pub mod name;
pub mod port;
pub mod record;
pub mod refusal;
pub mod run_channels;
pub mod status;
#[cfg(test)]
mod tests;
pub mod unit;

pub use channel::Channel;
pub use class::ClassConfig;
pub use item::PortItem;
pub use json::{JsonObject, JsonText};
pub use name::{ChildName, ClassName, PortName, QueueName, StateField, StepId, TaskAlias, TaskId, TaskKey};
pub use port::{PortAddress, PortDirection, PortMap, PortOptions};
pub use record::{StepLease, TaskRecord};
pub use refusal::TaskRefusal;
pub use run_channels::RunChannels;
pub use status::{StatusCause, TaskStatus};
pub use unit::{
    ActOutcome, ChildTarget, NewTask, PortTarget, StepEnding, StepError, TaskAct, TaskTarget, TaskUnit, UnitOrigin,
};
