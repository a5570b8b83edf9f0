//! Children of a task: creating them, writing to them, and reading what they have written.

use cronhold_core::task::port::parse_ports;
use cronhold_core::task::{
    ChildName, ChildTarget, ClassName, JsonText, NewTask, PortAddress, PortDirection, PortName, PortTarget, QueueName,
    TaskAct, TaskId, TaskKey, TaskStatus, TaskTarget,
};
use cronhold_schedule::TextError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::TaskStep;
use crate::worker::StepResult;

/// A child as a step knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildTask {
    target: TaskTarget,
    status: TaskStatus,
}

impl ChildTask {
    /// The id; `None` if the step has created the child, which gets its id at the commit.
    pub const fn id(&self) -> Option<TaskId> {
        match self.target {
            TaskTarget::Id(id) => Some(id),
            TaskTarget::New(_) => None,
        }
    }

    /// The status when the step began, or `queued` for a child that the step has created.
    pub const fn status(&self) -> TaskStatus {
        self.status
    }
}

impl TaskStep<'_> {
    /// A child by its name. Children that this step creates are not found by name.
    pub fn child(&self, name: &str) -> StepResult<Option<ChildTask>> {
        let name = ChildName::parse(name)?;
        if let Some(child) = self.window.children.iter().find(|child| child.name == name) {
            return Ok(Some(ChildTask { target: TaskTarget::Id(child.task), status: child.status }));
        }
        let Some(id) = self.load(self.store.child(self.id(), &name))? else { return Ok(None) };
        let record = self.load(self.store.find(&TaskKey::Id(id)))?;
        Ok(record.map(|record| ChildTask { target: TaskTarget::Id(id), status: record.status }))
    }

    /// Creates a child on the queue of the task.
    pub fn create_child(&mut self, name: &str, class: &str) -> StepResult<ChildTask> {
        let queue = self.window.task.queue.clone();
        self.create_child_with(name, NewTask::new(queue, ClassName::parse(class)?))
    }

    /// Creates a child on another queue.
    pub fn create_child_on(&mut self, name: &str, queue: &str, class: &str) -> StepResult<ChildTask> {
        self.create_child_with(name, NewTask::new(QueueName::parse(queue)?, ClassName::parse(class)?))
    }

    /// Creates a child with args and ports, given as JSON objects of names with options.
    pub fn create_child_with_ports(
        &mut self,
        name: &str,
        class: &str,
        args: &impl Serialize,
        inports: &str,
        outports: &str,
    ) -> StepResult<ChildTask> {
        let new = NewTask::new(self.window.task.queue.clone(), ClassName::parse(class)?);
        let (inports, outports) = (parse_ports(inports)?, parse_ports(outports)?);
        self.create_child_with(name, NewTask { args: Some(JsonText::of(args)?), inports, outports, ..new })
    }

    fn create_child_with(&mut self, name: &str, new: NewTask) -> StepResult<ChildTask> {
        let parent = Some((TaskTarget::Id(self.id()), ChildName::parse(name)?));
        let created_by = format!("job:{}", self.id());
        self.acts.push(TaskAct::Create(NewTask { parent, created_by, ..new }));
        self.created += 1;
        Ok(ChildTask { target: TaskTarget::New(self.created - 1), status: TaskStatus::Queued })
    }

    /// Writes a value to an in port of a child, which makes a step.
    pub fn write_to(&mut self, child: &ChildTask, port: &str, value: &(impl Serialize + ?Sized)) -> StepResult {
        let target = PortTarget { task: child.target, direction: PortDirection::In, port: PortName::parse(port)? };
        self.write_value(target, JsonText::of(value)?);
        Ok(())
    }

    /// Reads a value of an out port of a child, or its default; `None` if there is neither, and for a child that this
    /// step has created.
    pub fn read_from<T: DeserializeOwned>(&mut self, child: &ChildTask, port: &str) -> StepResult<Option<T>> {
        let TaskTarget::Id(task) = child.target else { return Ok(None) };
        let address = PortAddress { task, direction: PortDirection::Out, port: PortName::parse(port)? };
        let value = self.read_value(&address)?;
        Ok(value.map(|value| value.to()).transpose()?)
    }

    /// Moves all items of an out port of a child to an in port of another child, which makes a step. Items that the step
    /// has read from that port are not moved.
    pub fn connect(&mut self, from: &ChildTask, outport: &str, to: &ChildTask, inport: &str) -> StepResult {
        let port = |child: &ChildTask, direction, port: &str| {
            Ok::<_, TextError>(PortTarget { task: child.target, direction, port: PortName::parse(port)? })
        };
        let from = port(from, PortDirection::Out, outport)?;
        let to = vec![port(to, PortDirection::In, inport)?];
        self.acts.push(TaskAct::Connect { from, to });
        Ok(())
    }

    /// Makes a task without a parent a child.
    pub fn adopt(&mut self, task: TaskId, name: &str) -> StepResult {
        let (parent, child) = (TaskTarget::Id(self.id()), TaskTarget::Id(task));
        self.acts.push(TaskAct::Adopt { parent, child, name: ChildName::parse(name)? });
        Ok(())
    }

    /// Lets a child go. It goes on without a parent.
    pub fn disown(&mut self, child: &ChildTask) {
        let (parent, child) = (TaskTarget::Id(self.id()), ChildTarget::Task(child.target));
        self.acts.push(TaskAct::Disown { parent, child });
    }

    /// Requests a step of a child.
    pub fn run_child(&mut self, child: &ChildTask) {
        self.acts.push(TaskAct::Run { task: child.target, forced: false, at: None });
    }

    /// Ends a child, and its descendants if requested.
    pub fn terminate_child(&mut self, child: &ChildTask, recursive: bool) {
        self.acts.push(TaskAct::Terminate { task: child.target, recursive });
    }
}
