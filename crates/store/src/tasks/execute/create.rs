//! Creates tasks.

use cronhold_core::task::{
    ActOutcome, NewTask, PortDirection, StatusCause, TaskId, TaskRecord, TaskRefusal, TaskStatus,
};

use super::super::rows::{TaskCounter, TaskRows};
use super::UnitExecutor;

impl<R: TaskRows> UnitExecutor<'_, R> {
    /// Creates a task and requests its first step.
    pub(super) fn create(&mut self, new: &NewTask) -> Result<ActOutcome, R::Error> {
        let (queue, class) = (new.queue.clone(), new.class.clone());
        if !self.rows.has_class(&queue, &class)? {
            return Err(TaskRefusal::UnknownClass { queue, class }.into());
        }
        let number = self.rows.next_number(TaskCounter::Task)?;
        let Some(id) = TaskId::new(number) else {
            return Err(TaskRefusal::Invalid("all ids of tasks are in use".to_owned()).into());
        };
        let task = TaskRecord {
            id,
            queue,
            class,
            args: new.args.clone(),
            // It is queued below, which is published.
            status: TaskStatus::Completed,
            created_at: self.context.now,
            created_by: new.created_by.clone(),
            ran_at: None,
            parent: None,
            entry: None,
            run_at: None,
            lease: None,
            last_step: None,
            lost_steps: 0,
            refused_steps: 0,
            rate_minute: 0,
            rate_count: 0,
        };
        self.rows.insert_task(&task)?;
        if let Some((parent, name)) = &new.parent {
            let parent = self.target(*parent)?;
            self.adopt(parent, task.clone(), name)?;
        }
        self.created.push(id);
        self.set_ports(&task, PortDirection::In, &new.inports)?;
        self.set_ports(&task, PortDirection::Out, &new.outports)?;
        let task = self.task(id)?;
        debug_assert!(task.status.after(StatusCause::Run).is_some(), "a new task can run");
        self.request_step(task, false, new.at)?;
        Ok(ActOutcome::Created(id))
    }
}
