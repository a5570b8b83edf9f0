//! Carries out the acts of an executable on its step. An act that cannot be carried out fails the step, of which nothing
//! takes effect then.

use std::collections::BTreeMap;

use cronhold_core::task::log::{message_entry, object_entry};
use cronhold_core::task::port::parse_ports;
use cronhold_core::task::{
    Channel, ChildName, ChildTarget, JsonObject, JsonText, NewTask, PortAddress, PortDirection, PortItem, PortMap,
    PortName, PortTarget, StateField, TaskAct, TaskId, TaskKey, TaskTarget,
};
use cronhold_schedule::{Instant, TextError};

use super::change::{
    AliasForm, ChannelsForm, ConnectForm, DefaultForm, DirectionForm, KeyForm, PortForm, PortsForm, QueueForm, RunForm,
    StepChange, TakeForm, TerminateForm, TimeForm, WriteForm, parse_change, seconds_span,
};
use crate::step::{TaskStep, WriteGroup};
use crate::worker::{StepResult, StepStop};

/// Carries out acts on a step.
pub(super) struct ChangeApplier<'a, 's> {
    pub(super) step: &'a mut TaskStep<'s>,
    /// Children that the step has created, which get their ids at the commit.
    created: BTreeMap<ChildName, TaskTarget>,
    /// Acts so far, for messages.
    count: usize,
    /// Whether the step has replaced its ports, so that the window does not have them.
    has_new_ports: bool,
}

/// A step that fails because of its executable.
pub(super) fn protocol_error(message: impl std::fmt::Display) -> StepStop {
    StepStop::Failed(format!("protocol: {message}"))
}

impl<'a, 's> ChangeApplier<'a, 's> {
    pub(super) const fn new(step: &'a mut TaskStep<'s>) -> Self {
        Self { step, created: BTreeMap::new(), count: 0, has_new_ports: false }
    }

    /// Carries out acts in order. An error names the number of the act in the step, from 1.
    pub(super) fn apply_all(&mut self, acts: &[JsonText]) -> StepResult {
        for act in acts {
            self.count += 1;
            let number = self.count;
            let change =
                parse_change(act).map_err(|error| protocol_error(format!("act {number}: {}", error.message)))?;
            self.apply(change).map_err(|stop| match stop {
                StepStop::Failed(message) => protocol_error(format!("act {number}: {message}")),
                other => other,
            })?;
        }
        Ok(())
    }

    fn apply(&mut self, change: StepChange) -> StepResult {
        match change {
            StepChange::Take(take) => self.take(&take),
            StepChange::Write(write) => self.write(write),
            StepChange::Default(default) => self.set_default(default),
            StepChange::Channels(channels) => self.set_channels(channels),
            StepChange::Ports(ports) => self.set_ports(&ports),
            StepChange::Set(fields) => fields.into_iter().try_for_each(|(field, value)| {
                self.step.set_value(StateField::parse(&field)?, value);
                Ok(())
            }),
            StepChange::Unset(fields) => fields.iter().try_for_each(|field| self.step.unset(field)),
            StepChange::Queue(queue) => self.create(queue),
            StepChange::Adopt(adopt) => {
                let (parent, child) = (self.own(), TaskTarget::Id(self.resolve(&adopt.task)?));
                self.push(TaskAct::Adopt { parent, child, name: adopt.name })
            }
            StepChange::Disown(owner) => {
                let child = match (owner.child, owner.task) {
                    (Some(name), None) => ChildTarget::Name(name),
                    (None, Some(task)) => ChildTarget::Task(TaskTarget::Id(self.resolve(&task)?)),
                    _ => return self.step.fail("`disown` needs `child` or `task`"),
                };
                self.push(TaskAct::Disown { parent: self.own(), child })
            }
            StepChange::Alias(alias) => {
                let (task, alias) = self.alias(alias)?;
                self.push(TaskAct::AddAlias { task, alias })
            }
            StepChange::Unalias(alias) => {
                let (task, alias) = self.alias(alias)?;
                self.push(TaskAct::RemoveAlias { task, alias })
            }
            StepChange::Run(run) => self.run(run),
            StepChange::Terminate(terminate) => self.terminate(&terminate),
            StepChange::Connect(connect) => self.connect(connect),
            StepChange::Publish(publish) => {
                self.push(TaskAct::Publish { channel: publish.channel, message: publish.message })
            }
            StepChange::Log(entry) => self.log(&entry),
            StepChange::Context(fields) => {
                self.step.add_context(&fields);
                Ok(())
            }
            StepChange::Group(group) => {
                let (is_silent, is_unnoticed) = (group.log == Some(false), group.notify == Some(false));
                self.step.set_group(WriteGroup { is_silent, is_unnoticed });
                Ok(())
            }
        }
    }

    fn push(&mut self, act: TaskAct) -> StepResult {
        self.step.push_act(act);
        Ok(())
    }

    const fn own(&self) -> TaskTarget {
        TaskTarget::Id(self.step.task().id)
    }

    /// The id of a task that exists.
    fn resolve(&self, key: &KeyForm) -> StepResult<TaskId> {
        match key.key()? {
            TaskKey::Id(id) => Ok(id),
            key @ TaskKey::Alias(_) => match self.step.load(self.step.store().find(&key))? {
                Some(task) => Ok(task.id),
                None => self.step.fail(format!("there is no task `{key}`")),
            },
        }
    }

    fn child(&self, name: &ChildName) -> StepResult<TaskTarget> {
        if let Some(target) = self.created.get(name) {
            return Ok(*target);
        }
        match self.step.child(name.as_str())?.and_then(|child| child.id()) {
            Some(id) => Ok(TaskTarget::Id(id)),
            None => self.step.fail(format!("the task has no child `{name}`")),
        }
    }

    /// The task that an act is about.
    fn target(&self, child: Option<&ChildName>, task: Option<&KeyForm>) -> StepResult<TaskTarget> {
        match (child, task) {
            (None, None) => Ok(self.own()),
            (Some(child), None) => self.child(child),
            (None, Some(task)) => Ok(TaskTarget::Id(self.resolve(task)?)),
            (Some(_), Some(_)) => self.step.fail("an act is about a `child` or a `task`, not both"),
        }
    }

    /// A port; without a direction, an out port of the task itself, or an in port of another one.
    fn port(
        &self,
        port: &PortName,
        direction: Option<DirectionForm>,
        child: Option<&ChildName>,
        task: Option<&KeyForm>,
    ) -> StepResult<PortTarget> {
        let target = self.target(child, task)?;
        let usual = if target == self.own() { PortDirection::Out } else { PortDirection::In };
        let direction = direction.map_or(usual, DirectionForm::direction);
        if target == self.own() && !self.has_port(direction, port) {
            let (word, class) = (direction.port_word(), &self.step.task().class);
            return self.step.fail(format!("there is no {word} `{port}` (add it to the class {class} or to the task)"));
        }
        Ok(PortTarget { task: target, direction, port: port.clone() })
    }

    fn has_port(&self, direction: PortDirection, port: &PortName) -> bool {
        let window = self.step.window();
        let (ports, has_template) = match direction {
            PortDirection::In => (&window.inports, window.has_inport_template),
            PortDirection::Out => (&window.outports, window.has_outport_template),
        };
        self.has_new_ports || has_template || ports.iter().any(|known| known.name == *port)
    }

    fn take(&mut self, take: &TakeForm) -> StepResult {
        let (task, direction) = match &take.child {
            None => (self.own(), PortDirection::In),
            Some(child) => (self.child(child)?, PortDirection::Out),
        };
        let TaskTarget::Id(task) = task else { return self.step.fail("a new child has written nothing yet") };
        if take.child.is_none() && !self.has_port(direction, &take.port) {
            return self.step.fail(format!("there is no inport `{}`", take.port));
        }
        let port = PortAddress { task, direction, port: take.port.clone() };
        let left = self.step.buffer(&port)?.left();
        if take.count > left {
            return self
                .step
                .fail(format!("{} items are taken from port `{}`, which has {left}", take.count, take.port));
        }
        for _ in 0..take.count {
            self.step.read_item(&port)?;
        }
        Ok(())
    }

    fn write(&mut self, write: WriteForm) -> StepResult {
        let port = self.port(&write.port, write.dir, write.child.as_ref(), write.task.as_ref())?;
        let values = match (write.data, write.list) {
            (Some(value), None) => vec![value],
            (None, Some(values)) => values,
            _ => return self.step.fail("`write` needs either `data` or `list`"),
        };
        values.into_iter().for_each(|value| self.step.write_value(port.clone(), value));
        Ok(())
    }

    fn set_default(&mut self, default: DefaultForm) -> StepResult {
        let port = self.port(&default.port, default.dir, default.child.as_ref(), default.task.as_ref())?;
        let item = match (default.data, default.clear) {
            (Some(value), false) => Some(PortItem::new(value).with_context(self.step.context().clone())),
            (None, true) => None,
            _ => return self.step.fail("`default` needs either `data` or `\"clear\":true`"),
        };
        self.push(TaskAct::SetDefault { port, item })
    }

    fn set_channels(&mut self, channels: ChannelsForm) -> StepResult {
        let port = self.port(&channels.port, channels.dir, channels.child.as_ref(), channels.task.as_ref())?;
        self.push(TaskAct::SetChannels { port, channels: channels.channels })
    }

    fn set_ports(&mut self, ports: &PortsForm) -> StepResult {
        let task = self.target(ports.child.as_ref(), ports.task.as_ref())?;
        self.has_new_ports |= task == self.own();
        for (direction, ports) in [(PortDirection::In, &ports.inports), (PortDirection::Out, &ports.outports)] {
            if let Some(ports) = ports {
                self.push(TaskAct::SetPorts { task, direction, ports: parse_ports(ports.as_str())? })?;
            }
        }
        Ok(())
    }

    fn create(&mut self, new: QueueForm) -> StepResult {
        let ports = |ports: Option<JsonText>| ports.map_or(Ok(PortMap::new()), |ports| parse_ports(ports.as_str()));
        let task = self.step.task();
        let (queue, created_by) = (new.queue.unwrap_or_else(|| task.queue.clone()), format!("job:{}", task.id));
        let created = NewTask {
            args: new.args,
            parent: new.name.clone().map(|name| (self.own(), name)),
            created_by,
            inports: ports(new.inports)?,
            outports: ports(new.outports)?,
            at: new.at.map(|at| at.instant()).transpose()?,
            ..NewTask::new(queue, new.class)
        };
        let target = self.step.push_task(created);
        if let Some(name) = new.name {
            self.created.insert(name, target);
        }
        Ok(())
    }

    fn alias(&self, alias: AliasForm) -> StepResult<(TaskTarget, cronhold_core::task::TaskAlias)> {
        match alias {
            AliasForm::Own(alias) => Ok((self.own(), alias)),
            AliasForm::Other { name, child, task } => Ok((self.target(child.as_ref(), task.as_ref())?, name)),
        }
    }

    fn run(&mut self, run: RunForm) -> StepResult {
        let at = self.time(run.at, run.wait)?;
        let (task, forced) = (self.target(run.child.as_ref(), run.task.as_ref())?, run.force);
        let has_target = task != self.own();
        match (run.own || !has_target && !run.parent, run.parent, has_target) {
            (true, false, false) | (false, false, true) => self.push(TaskAct::Run { task, forced, at }),
            (false, true, false) => self.push(TaskAct::RunParent { task, forced, at }),
            _ => self.step.fail("`run` needs one of `self`, `parent`, `child` and `task`"),
        }
    }

    fn time(&self, at: Option<TimeForm>, wait: Option<f64>) -> StepResult<Option<Instant>> {
        match (at, wait) {
            (Some(at), None) => Ok(Some(at.instant()?)),
            (None, Some(wait)) => Ok(Some(self.step.now().plus(seconds_span(wait)?))),
            (None, None) => Ok(None),
            (Some(_), Some(_)) => self.step.fail("`run` takes `at` or `wait`, not both"),
        }
    }

    fn terminate(&mut self, terminate: &TerminateForm) -> StepResult {
        let task = self.target(terminate.child.as_ref(), terminate.task.as_ref())?;
        if task == self.own() && !terminate.own {
            return self.step.fail("`terminate` needs one of `self`, `child` and `task`");
        }
        self.push(TaskAct::Terminate { task, recursive: terminate.recursive })
    }

    /// Moves items: from an in port of the task or an out port of a child, to an out port of the task or in ports of
    /// children, unless directions are given.
    fn connect(&mut self, connect: ConnectForm) -> StepResult {
        let from = connect.from;
        let is_own = from.child.is_none() && from.task.is_none();
        let dir = from.dir.unwrap_or(if is_own { DirectionForm::In } else { DirectionForm::Out });
        let from = self.port(&from.port, Some(dir), from.child.as_ref(), from.task.as_ref())?;
        let port = |to: &PortForm| self.port(&to.port, to.dir, to.child.as_ref(), to.task.as_ref());
        let to = connect.to.iter().map(port).collect::<StepResult<_>>()?;
        self.push(TaskAct::Connect { from, to })
    }

    fn log(&mut self, entry: &JsonText) -> StepResult {
        let (context, now) = (self.step.context(), self.step.now());
        let message = match JsonObject::parse(entry.as_str()) {
            Ok(object) => object_entry(context, now, &object),
            Err(_) => {
                let text: Result<String, TextError> = entry.to();
                message_entry(context, now, &text.unwrap_or_else(|_| entry.to_string()))
            }
        };
        self.push(TaskAct::Publish { channel: Channel::log(), message })
    }
}
