//! Requests from outside of any step: what programs and tests do with the tasks of a runtime.

use cronhold_core::task::{
    ActOutcome, ClassName, JsonText, NewTask, PortDirection, PortItem, PortName, PortTarget, TaskAct, TaskId, TaskKey,
    TaskRecord, TaskRefusal, TaskTarget, TaskUnit,
};
use cronhold_store::Fault;
use cronhold_store::tasks::TaskReceipt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::block_on::block_on;
use crate::error::WorkerError;
use crate::runtime::WorkerRuntime;

impl WorkerRuntime {
    /// Creates a task on the queue of the runtime. `args` is a list or a tuple; `()` stands for none.
    pub fn create(&self, class: &str, args: &impl Serialize) -> Result<TaskId, WorkerError> {
        let class = ClassName::parse(class).map_err(WorkerError::invalid("class"))?;
        let args = JsonText::of(args).map_err(WorkerError::invalid("args"))?;
        let args = Some(args).filter(|args| args.as_str() != "null");
        self.create_task(NewTask { args, ..NewTask::new(self.queue.clone(), class) })
    }

    /// Creates a task.
    pub fn create_task(&self, task: NewTask) -> Result<TaskId, WorkerError> {
        match self.request(TaskAct::Create(task))? {
            ActOutcome::Created(id) => Ok(id),
            other => Err(unexpected(&other)),
        }
    }

    /// Writes a value to an in port, which requests a step of the task.
    pub fn write(&self, task: TaskId, port: &str, value: &(impl Serialize + ?Sized)) -> Result<(), WorkerError> {
        let item = PortItem::new(JsonText::of(value).map_err(WorkerError::invalid(port))?);
        let port = port_of(task, PortDirection::In, port)?;
        self.request(TaskAct::Write { port, items: vec![item], as_default: false, notify: true }).map(drop)
    }

    /// Takes a value from an out port, or its default; `None` if there is neither.
    pub fn read<T: DeserializeOwned>(&self, task: TaskId, port: &str) -> Result<Option<T>, WorkerError> {
        let target = port_of(task, PortDirection::Out, port)?;
        match self.request(TaskAct::Pop { port: target, count: 1, or_default: true })? {
            ActOutcome::Items(items) => {
                let value = items.first().map(|item| item.data.to());
                value.transpose().map_err(WorkerError::invalid(port))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Ends a task, and its descendants if requested.
    pub fn terminate(&self, task: TaskId, recursive: bool) -> Result<(), WorkerError> {
        self.request(TaskAct::Terminate { task: TaskTarget::Id(task), recursive }).map(drop)
    }

    /// A task by its id.
    pub fn find(&self, task: TaskId) -> Result<TaskRecord, WorkerError> {
        let found = block_on(self.store.find(&TaskKey::Id(task)))?;
        found.ok_or_else(|| TaskRefusal::UnknownTask(task).into())
    }

    /// Carries out one act.
    pub fn request(&self, act: TaskAct) -> Result<ActOutcome, WorkerError> {
        match block_on(self.store.commit(vec![TaskUnit::request(vec![act])])).pop() {
            Some(Ok(TaskReceipt::Committed(mut outcomes))) if outcomes.len() == 1 => Ok(outcomes.remove(0)),
            Some(Err(error)) => Err(error.into()),
            _ => Err(Fault::Permanent("the store did not reply to a request".to_owned()).into()),
        }
    }
}

fn port_of(task: TaskId, direction: PortDirection, port: &str) -> Result<PortTarget, WorkerError> {
    let name = PortName::parse(port).map_err(WorkerError::invalid("port"))?;
    Ok(PortTarget::new(task, direction, name))
}

fn unexpected(outcome: &ActOutcome) -> WorkerError {
    Fault::Permanent(format!("unexpected reply from the store: {outcome:?}")).into()
}
