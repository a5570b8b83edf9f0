//! A unit: everything that one step or one request changes. A store carries it out as a whole or not at all.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::TaskId;
use super::channel::Channel;
use super::item::PortItem;
use super::json::{JsonObject, JsonText};
use super::limits::{CONTEXT_BYTES_MAX, LABEL_BYTES_MAX, UNIT_ACTS_MAX, UNIT_BYTES_MAX, VALUE_BYTES_MAX};
use super::name::{ChildName, ClassName, PortName, QueueName, StateField, StepId, TaskAlias};
use super::port::{PortDirection, PortMap, check_ports};
use super::refusal::TaskRefusal;

/// What one step or one request changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUnit {
    pub origin: UnitOrigin,
    /// The context of the messages that the unit publishes.
    pub context: JsonObject,
    /// Carried out in this order. Messages are delivered in their order after all acts: a write that follows an act that
    /// publishes comes before its message.
    pub acts: Vec<TaskAct>,
}

/// Where a unit comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitOrigin {
    /// A step. The unit is carried out only while the step holds its task.
    Step { task: TaskId, step: StepId, ending: StepEnding },
    /// A request from outside of any step. With a key, it takes effect once within a day.
    Request { key: Option<String> },
}

/// How a step ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEnding {
    /// The startup has returned; the step goes on.
    Started,
    /// The worker has returned.
    Completed,
    /// The worker waits for input.
    Suspended,
    /// The worker failed.
    Failed(StepError),
    /// The shutdown of the worker has returned, or has failed with an error that is logged and has no other effect.
    ShutDown(Option<StepError>),
    /// The worker process gives the step back before it began.
    GivenBack,
    /// The step cannot go on, because what it reads has changed or the store was away. It is repeated as a step is that
    /// was refused for such a reason, and fails with this error after too many attempts.
    Repeated(StepError),
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepError {
    pub message: String,
    pub backtrace: Option<String>,
}

/// The task that an act is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskTarget {
    Id(TaskId),
    /// The task that this [`TaskAct::Create`] of the same unit creates, counted from 0.
    New(usize),
}

/// A port that an act is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTarget {
    pub task: TaskTarget,
    pub direction: PortDirection,
    pub port: PortName,
}

/// A child as a request to disown names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildTarget {
    Name(ChildName),
    Task(TaskTarget),
}

/// A task that is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTask {
    pub queue: QueueName,
    pub class: ClassName,
    /// A JSON list, or `None`.
    pub args: Option<JsonText>,
    /// The parent, and the name that the task has among its children.
    pub parent: Option<(TaskTarget, ChildName)>,
    /// The name of its creator; empty if none is given.
    pub created_by: String,
    /// Ports beside those of the class.
    pub inports: PortMap,
    pub outports: PortMap,
    /// When its first step is due; `None` for now.
    pub at: Option<Instant>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskAct {
    /// Takes items that the step has read: the first `count`, if they still begin at `position`.
    Take {
        port: PortTarget,
        position: u64,
        count: u64,
    },
    /// Takes at most `count` items, and returns them. It takes fewer of a port with more than 100,000 items or 16 MiB, so
    /// it is repeated until it returns none. If there are none and `or_default` is set, returns the default.
    Pop {
        port: PortTarget,
        count: u64,
        or_default: bool,
    },
    /// Writes items in order, or the last one as the default, and publishes their values if it is an out port. With
    /// `notify`, the task of an in port and the parent of the task of an out port run.
    Write {
        port: PortTarget,
        items: Vec<PortItem>,
        as_default: bool,
        notify: bool,
    },
    /// Sets or clears the default.
    SetDefault {
        port: PortTarget,
        item: Option<PortItem>,
    },
    /// Replaces the channels.
    SetChannels {
        port: PortTarget,
        channels: Vec<Channel>,
    },
    /// Replaces the ports of a task by those of its class and these. Ports that remain keep their items.
    SetPorts {
        task: TaskTarget,
        direction: PortDirection,
        ports: PortMap,
    },
    /// Moves all items to the other ports, each of which gets all of them, copies the default, and returns the items.
    Connect {
        from: PortTarget,
        to: Vec<PortTarget>,
    },
    /// Sets fields of the state.
    SetState {
        task: TaskTarget,
        fields: Vec<(StateField, JsonText)>,
    },
    /// Removes fields of the state, or those of them that exist.
    UnsetState {
        task: TaskTarget,
        fields: Vec<StateField>,
    },
    Create(NewTask),
    Adopt {
        parent: TaskTarget,
        child: TaskTarget,
        name: ChildName,
    },
    Disown {
        parent: TaskTarget,
        child: ChildTarget,
    },
    AddAlias {
        task: TaskTarget,
        alias: TaskAlias,
    },
    RemoveAlias {
        task: TaskTarget,
        alias: TaskAlias,
    },
    /// Requests a step; if `forced`, whatever the status. At `at`, or now.
    Run {
        task: TaskTarget,
        forced: bool,
        at: Option<Instant>,
    },
    /// Requests a step of the parent, if there is one.
    RunParent {
        task: TaskTarget,
        forced: bool,
        at: Option<Instant>,
    },
    /// Ends the task, and if `recursive`, all of its descendants.
    Terminate {
        task: TaskTarget,
        recursive: bool,
    },
    /// Deletes the task and all of its descendants if all of them are terminated.
    Delete {
        task: TaskTarget,
    },
    /// Publishes a message. Ports receive it in the context of the unit and, unless it is a log entry, are logged.
    Publish {
        channel: Channel,
        message: JsonText,
    },
}

/// What an act returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActOutcome {
    /// Nothing but that it took effect.
    Done,
    /// The items that were taken.
    Items(Vec<PortItem>),
    /// The task that was created.
    Created(TaskId),
    /// The task that will make a step; `None` if its status does not allow it.
    Ran(Option<TaskId>),
    /// The class of the task is not registered any more, so the task was terminated.
    ClassMissing,
    /// Whether the task was deleted.
    Deleted(bool),
}

impl TaskUnit {
    /// A request with these acts.
    pub const fn request(acts: Vec<TaskAct>) -> Self {
        Self { origin: UnitOrigin::Request { key: None }, context: JsonObject::new(), acts }
    }

    /// The end of a step with these acts. What the unit writes names the task.
    pub fn step(task: TaskId, step: StepId, ending: StepEnding, acts: Vec<TaskAct>) -> Self {
        let context = JsonObject::new().with("job", JsonText::of_number(task.number()));
        Self { origin: UnitOrigin::Step { task, step, ending }, context, acts }
    }

    /// This unit, which takes effect once for this key.
    #[must_use]
    pub fn once(self, key: &str) -> Self {
        Self { origin: UnitOrigin::Request { key: Some(key.to_owned()) }, ..self }
    }

    /// Checks the limits that do not depend on what is stored.
    pub fn check(&self) -> Result<(), TaskRefusal> {
        within("acts of a unit", self.acts.iter().map(TaskAct::changes).sum(), UNIT_ACTS_MAX)?;
        within("bytes of a context", self.context.written_bytes(), CONTEXT_BYTES_MAX)?;
        match &self.origin {
            UnitOrigin::Request { key } => {
                within("bytes of a key", key.as_ref().map_or(0, String::len), LABEL_BYTES_MAX)?;
            }
            UnitOrigin::Step { ending: StepEnding::GivenBack | StepEnding::Repeated(_), .. }
                if !self.acts.is_empty() =>
            {
                let text = "a step that is repeated cannot change anything, because it would do so again";
                return Err(TaskRefusal::Invalid(text.to_owned()));
            }
            UnitOrigin::Step { .. } => {}
        }
        let mut bytes = 0;
        for act in &self.acts {
            act.check()?;
            for value in act.values() {
                within("bytes of a value", value.as_str().len(), VALUE_BYTES_MAX)?;
            }
            bytes += act.written_bytes();
        }
        within("bytes of a unit", bytes, UNIT_BYTES_MAX)
    }
}

fn within(what: &'static str, found: usize, limit: usize) -> Result<(), TaskRefusal> {
    match found > limit {
        true => Err(TaskRefusal::TooLarge { what, found, limit }),
        false => Ok(()),
    }
}

impl TaskAct {
    /// Bytes of the JSON that the act writes, as they count for the limit of a unit.
    pub fn written_bytes(&self) -> usize {
        let values: usize = self.values().iter().map(|value| value.as_str().len()).sum();
        values + self.items().iter().map(PortItem::label_bytes).sum::<usize>()
    }

    /// What the act changes, as it counts for the limit of a unit: the act itself, or each item, field or target of it.
    pub fn changes(&self) -> usize {
        let parts = match self {
            Self::Write { items, as_default: false, .. } => items.len(),
            Self::SetState { fields, .. } => fields.len(),
            Self::UnsetState { fields, .. } => fields.len(),
            Self::SetPorts { ports, .. } => ports.len(),
            Self::Connect { to, .. } => to.len(),
            _ => 1,
        };
        parts.max(1)
    }

    /// Checks what is not a value.
    fn check(&self) -> Result<(), TaskRefusal> {
        let check = |ports: &PortMap| check_ports(ports).map_err(|error| TaskRefusal::Invalid(error.to_string()));
        for item in self.items() {
            for part in item.context.iter().chain(&item.options) {
                within("bytes of a context", part.written_bytes(), CONTEXT_BYTES_MAX)?;
            }
        }
        match self {
            Self::SetPorts { ports, .. } => check(ports),
            Self::Create(task) => {
                check(&task.inports)?;
                check(&task.outports)?;
                within("bytes of the name of a creator", task.created_by.len(), LABEL_BYTES_MAX)?;
                match task.args.as_ref().is_some_and(|args| !args.as_str().starts_with('[')) {
                    true => Err(TaskRefusal::Invalid("the args of a task are not a list".to_owned())),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// The items that the act writes.
    fn items(&self) -> &[PortItem] {
        match self {
            Self::Write { items, .. } => items,
            Self::SetDefault { item, .. } => item.as_slice(),
            _ => &[],
        }
    }

    /// The JSON values that the act writes.
    fn values(&self) -> Vec<&JsonText> {
        match self {
            Self::Write { .. } | Self::SetDefault { .. } => self.items().iter().map(|item| &item.data).collect(),
            Self::SetState { fields, .. } => fields.iter().map(|(_, value)| value).collect(),
            Self::SetPorts { ports, .. } => ports.values().filter_map(|options| options.default.as_ref()).collect(),
            Self::Create(task) => {
                let options = task.inports.values().chain(task.outports.values());
                options.filter_map(|options| options.default.as_ref()).chain(&task.args).collect()
            }
            Self::Publish { message, .. } => vec![message],
            _ => Vec::new(),
        }
    }
}

impl StepError {
    /// An error without a backtrace.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), backtrace: None }
    }
}

impl PortTarget {
    /// A port of a task that exists.
    pub const fn new(task: TaskId, direction: PortDirection, port: PortName) -> Self {
        Self { task: TaskTarget::Id(task), direction, port }
    }
}

impl NewTask {
    /// A task without args, parent and further ports, whose first step is due now.
    pub fn new(queue: QueueName, class: ClassName) -> Self {
        let (inports, outports) = (PortMap::new(), PortMap::new());
        Self { queue, class, args: None, parent: None, created_by: String::new(), inports, outports, at: None }
    }
}
