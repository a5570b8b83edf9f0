//! A step as its worker sees it. Reads come from the window that was loaded with the lease, and from further reads of
//! the store; writes are collected, and are committed together when the worker returns.
//!
//! A step sees its own changes of the state and of defaults, and the children that it has created. Items that it writes
//! to its own in ports are there in the next step, which the write requests.

mod buffer;
mod children;
mod inputs;
mod ports;

use std::collections::BTreeMap;

use cronhold_core::task::limits::{UNIT_ACTS_MAX, UNIT_BYTES_MAX};
use cronhold_core::task::log::PortLog;
use cronhold_core::task::{
    Channel, JsonObject, JsonText, NewTask, PortAddress, StateField, StepId, TaskAct, TaskId, TaskRecord, TaskTarget,
};
use cronhold_schedule::Instant;
use cronhold_store::tasks::{TaskStore, TaskWindow};
use cronhold_store::{Fault, Pending};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::buffer::PortBuffer;
pub use self::children::ChildTask;
pub(crate) use self::inputs::{AfterRows, InputRows};
use crate::block_on::block_on;
use crate::worker::{StepResult, StepStop};

/// Values that a step logs. What it reads and writes beyond that is not logged.
const LOGGED_VALUES_MAX: usize = 10_000;

/// A step of a task.
#[derive(Debug)]
pub struct TaskStep<'s> {
    store: &'s dyn TaskStore,
    place: StepPlace,
    window: TaskWindow,
    now: Instant,
    context: JsonObject,
    /// Ports that the step reads: its own in ports, and out ports of its children.
    buffers: BTreeMap<PortAddress, PortBuffer>,
    /// Fields that the step has changed; `None` if it has removed them.
    state: BTreeMap<StateField, Option<JsonText>>,
    /// Bytes of the values that the step has set.
    state_bytes: usize,
    acts: Vec<TaskAct>,
    /// Acts whose bytes are counted, and these bytes.
    counted: (usize, usize),
    created: usize,
    log: PortLog,
    logged_values: usize,
    /// Whether writes to out ports set their defaults.
    writes_defaults: bool,
    group: WriteGroup,
}

/// Which step of its task a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPlace {
    pub id: StepId,
    /// Whether no step of the task has begun before.
    pub is_first: bool,
}

/// How items are written from some act on.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteGroup {
    /// Whether reads and writes of the items are not logged.
    pub(crate) is_silent: bool,
    /// Whether the tasks that read the items are not run.
    pub(crate) is_unnoticed: bool,
}

impl<'s> TaskStep<'s> {
    pub(crate) fn new(store: &'s dyn TaskStore, place: StepPlace, window: TaskWindow, now: Instant) -> Self {
        let context = JsonObject::new().with("job", JsonText::of_number(window.task.id.number()));
        Self {
            store,
            place,
            window,
            now,
            context,
            buffers: BTreeMap::new(),
            state: BTreeMap::new(),
            state_bytes: 0,
            acts: Vec::new(),
            counted: (0, 0),
            created: 0,
            log: PortLog::default(),
            logged_values: 0,
            writes_defaults: false,
            group: WriteGroup::default(),
        }
    }

    /// The task as it was when the step began.
    pub const fn task(&self) -> &TaskRecord {
        &self.window.task
    }

    /// Which step of the task this is.
    pub const fn place(&self) -> StepPlace {
        self.place
    }

    /// The time at which the step began, by the clock of the store.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The args of the task; an empty list if it has none.
    pub fn args<T: DeserializeOwned>(&self) -> StepResult<T> {
        match &self.window.task.args {
            Some(args) => Ok(args.to()?),
            None => Ok(JsonText::list([]).to()?),
        }
    }

    /// Stops the step until there is input. What it has done is committed: `return step.suspend();`
    pub const fn suspend<T>(&self) -> StepResult<T> {
        Err(StepStop::Suspended)
    }

    /// Stops the step with an error. Nothing of it takes effect.
    pub fn fail<T>(&self, message: impl Into<String>) -> StepResult<T> {
        Err(StepStop::Failed(message.into()))
    }

    /// A field of the state; `None` if it is not set.
    pub fn get<T: DeserializeOwned>(&self, field: &str) -> StepResult<Option<T>> {
        Ok(self.state_value(field).map(JsonText::to).transpose()?)
    }

    fn state_value(&self, field: &str) -> Option<&JsonText> {
        match self.state.get(field) {
            Some(changed) => changed.as_ref(),
            None => self.window.state.iter().find(|(name, _)| name.as_str() == field).map(|(_, value)| value),
        }
    }

    /// Sets a field of the state.
    pub fn set(&mut self, field: &str, value: &(impl Serialize + ?Sized)) -> StepResult {
        let (field, value) = (StateField::parse(field)?, JsonText::of(value)?);
        self.set_value(field, value);
        Ok(())
    }

    pub(crate) fn set_value(&mut self, field: StateField, value: JsonText) {
        self.state_bytes += value.as_str().len();
        if let Some(Some(before)) = self.state.insert(field, Some(value)) {
            self.state_bytes -= before.as_str().len();
        }
    }

    /// Removes a field of the state.
    pub fn unset(&mut self, field: &str) -> StepResult {
        if let Some(Some(before)) = self.state.insert(StateField::parse(field)?, None) {
            self.state_bytes -= before.as_str().len();
        }
        Ok(())
    }

    /// Requests another step after this one.
    pub fn run_again(&mut self) {
        self.request_run(None);
    }

    /// Requests another step at a time. An earlier step stands for it.
    pub fn run_at(&mut self, at: Instant) {
        self.request_run(Some(at));
    }

    fn request_run(&mut self, at: Option<Instant>) {
        self.acts.push(TaskAct::Run { task: TaskTarget::Id(self.window.task.id), forced: false, at });
    }

    /// Publishes a message.
    pub fn publish(&mut self, channel: &str, message: &(impl Serialize + ?Sized)) -> StepResult {
        let (channel, message) = (Channel::parse(channel)?, JsonText::of(message)?);
        self.acts.push(TaskAct::Publish { channel, message });
        Ok(())
    }

    /// Everything that the step does, as one unit carries it out.
    pub(crate) fn into_acts(mut self) -> Vec<TaskAct> {
        self.end_log_entry();
        let task = TaskTarget::Id(self.window.task.id);
        // What was read comes first: nothing that the step does may move it.
        let mut acts: Vec<TaskAct> = self.buffers.iter().filter_map(|(port, buffer)| buffer.to_act(port)).collect();
        acts.append(&mut self.acts);
        let (mut set, mut unset) = (Vec::new(), Vec::new());
        for (field, value) in self.state {
            match value {
                Some(value) => set.push((field, value)),
                None => unset.push(field),
            }
        }
        if !set.is_empty() {
            acts.push(TaskAct::SetState { task, fields: set });
        }
        if !unset.is_empty() {
            acts.push(TaskAct::UnsetState { task, fields: unset });
        }
        acts
    }

    /// Whether the step has used less than half of what one unit can change. A worker that reads in a loop of its own can
    /// stop when this returns false: `step.run_again(); return step.suspend();`
    ///
    /// If the step was refused before, each refusal halves what it uses, because its messages may have too many receivers.
    pub fn has_room(&mut self) -> bool {
        let (acts, bytes) = self.counted;
        let added: usize = self.acts[acts..].iter().map(TaskAct::written_bytes).sum();
        self.counted = (self.acts.len(), bytes + added);
        let (acts, bytes) = (self.acts.len() + self.state.len(), self.counted.1 + self.state_bytes);
        acts <= self.share_of(UNIT_ACTS_MAX / 2) && bytes <= self.share_of(UNIT_BYTES_MAX / 2)
    }

    /// How much of an amount the step uses: half of it for each time that it was refused.
    fn share_of(&self, amount: usize) -> usize {
        amount.checked_shr(self.window.task.refused_steps).unwrap_or(0)
    }

    /// Ends the entry of the log that has what was read and written since the last one.
    fn end_log_entry(&mut self) {
        let log = std::mem::take(&mut self.log);
        if let Some(message) = log.to_entry(&self.context, self.now) {
            self.acts.push(TaskAct::Publish { channel: Channel::log(), message });
        }
    }

    /// Whether one more value is logged.
    fn counts_for_log(&mut self) -> bool {
        self.logged_values += 1;
        self.logged_values <= LOGGED_VALUES_MAX
    }

    /// Loads what the window does not have. If the store is away, the step is repeated.
    pub(crate) fn load<T>(&self, request: Pending<'_, Result<T, Fault>>) -> StepResult<T> {
        load(request)
    }

    const fn id(&self) -> TaskId {
        self.window.task.id
    }

    pub(crate) fn store(&self) -> &'s dyn TaskStore {
        self.store
    }

    pub(crate) const fn window(&self) -> &TaskWindow {
        &self.window
    }

    pub(crate) const fn context(&self) -> &JsonObject {
        &self.context
    }

    /// Adds fields to the context of everything that follows.
    pub(crate) fn add_context(&mut self, fields: &JsonObject) {
        self.end_log_entry();
        self.context = std::mem::take(&mut self.context).merged(fields);
    }

    /// How everything that follows is written.
    pub(crate) fn set_group(&mut self, group: WriteGroup) {
        self.group = group;
    }

    /// Whether writes to out ports set their defaults from now on.
    pub(crate) fn set_writes_defaults(&mut self, writes_defaults: bool) {
        self.writes_defaults = writes_defaults;
    }

    /// Adds an act as it is.
    pub(crate) fn push_act(&mut self, act: TaskAct) {
        self.acts.push(act);
    }

    /// Creates a task, and returns it as a target of further acts.
    pub(crate) fn push_task(&mut self, new: NewTask) -> TaskTarget {
        self.acts.push(TaskAct::Create(new));
        self.created += 1;
        TaskTarget::New(self.created - 1)
    }
}

/// Loads something from the store of a step or of a job. If the store is away, the step is repeated.
pub(crate) fn load<T>(request: Pending<'_, Result<T, Fault>>) -> StepResult<T> {
    block_on(request).map_err(|fault| match fault.is_transient() {
        true => StepStop::Repeated(fault.to_string()),
        false => fault.into(),
    })
}
