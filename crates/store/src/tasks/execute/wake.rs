//! Changes the status of tasks, and gives them places in their queues.

use cronhold_core::task::limits::TREE_TASKS_MAX;
use cronhold_core::task::{ActOutcome, StatusCause, TaskId, TaskRecord, TaskRefusal};
use cronhold_schedule::Instant;

use super::super::rows::{TaskCounter, TaskRows};
use super::{UnitExecutor, context_of_task};

/// Children that are read at a time.
const CHILDREN_PAGE: usize = 1_000;

impl<R: TaskRows> UnitExecutor<'_, R> {
    /// Changes the status by the table, and publishes it if it has changed. The caller writes the task.
    pub(super) fn change_status(&mut self, task: &mut TaskRecord, cause: StatusCause) -> Result<bool, R::Error> {
        let Some(status) = task.status.after(cause) else { return Ok(false) };
        task.status = status;
        self.publish_status(task)?;
        Ok(true)
    }

    /// Requests a step: the task is queued and gets a place in its queue, now or at `at`. A task that has a place
    /// already, or an earlier time, keeps it.
    pub(super) fn request_step(
        &mut self,
        mut task: TaskRecord,
        forced: bool,
        at: Option<Instant>,
    ) -> Result<ActOutcome, R::Error> {
        if !forced && !task.status.is_runnable() {
            return Ok(ActOutcome::Ran(None));
        }
        if !self.rows.has_class(&task.queue, &task.class)? {
            return self.terminate_classless(task);
        }
        let before = (task.status, task.entry, task.run_at);
        self.change_status(&mut task, if forced { StatusCause::ForcedRun } else { StatusCause::Run })?;
        match at.filter(|at| *at > self.context.now) {
            None => self.give_entry(&mut task)?,
            Some(at) if task.entry.is_none() => {
                task.run_at = Some(task.run_at.map_or(at, |known| known.min(at)));
                self.effects.arrivals.insert(task.queue.clone());
            }
            Some(_) => {}
        }
        if before != (task.status, task.entry, task.run_at) {
            self.rows.put_task(&task)?;
        }
        Ok(ActOutcome::Ran(Some(task.id)))
    }

    /// Requests a step of the parent; nothing happens if there is none.
    pub(super) fn request_parent_step(
        &mut self,
        task: &TaskRecord,
        forced: bool,
        at: Option<Instant>,
    ) -> Result<ActOutcome, R::Error> {
        let Some((parent, _)) = &task.parent else { return Ok(ActOutcome::Ran(None)) };
        let parent = self.task(*parent)?;
        self.request_step(parent, forced, at)
    }

    /// Gives a task a place in its queue unless it has one. While a step holds it, it waits with its place.
    pub(super) fn give_entry(&mut self, task: &mut TaskRecord) -> Result<(), R::Error> {
        if task.entry.is_none() {
            task.entry = Some(self.rows.next_number(TaskCounter::Entry)?);
        }
        if task.is_ready() {
            self.effects.arrivals.insert(task.queue.clone());
        }
        Ok(())
    }

    /// Terminates a task whose class is not registered, because no worker would ever make its step. Its parent runs, as
    /// after every end of a task, or is terminated for the same reason.
    pub(super) fn terminate_classless(&mut self, mut task: TaskRecord) -> Result<ActOutcome, R::Error> {
        while self.end_classless(&mut task)? {
            let Some((parent, _)) = &task.parent else { break };
            let parent = self.task(*parent)?;
            if !parent.status.is_runnable() {
                break;
            }
            if self.rows.has_class(&parent.queue, &parent.class)? {
                self.request_step(parent, false, None)?;
                break;
            }
            task = parent;
        }
        Ok(ActOutcome::ClassMissing)
    }

    /// Terminates one task, and returns whether its status has changed. The entry of the log names this task, and not the
    /// one that has caused it.
    fn end_classless(&mut self, task: &mut TaskRecord) -> Result<bool, R::Error> {
        let (queue, class) = (task.queue.clone(), task.class.clone());
        let has_changed = self.change_status(task, StatusCause::ClassMissing)?;
        (task.entry, task.run_at) = (None, None);
        let context = std::mem::replace(&mut self.item_context, context_of_task(task.id));
        self.log_error(&TaskRefusal::UnknownClass { queue, class }.to_string(), None);
        self.item_context = context;
        self.rows.put_task(task)?;
        Ok(has_changed)
    }

    /// Ends a task, and its descendants if requested.
    pub(super) fn terminate(&mut self, task: TaskRecord, recursive: bool) -> Result<ActOutcome, R::Error> {
        let id = task.id;
        let outcome = self.terminate_one(task)?;
        if recursive {
            for descendant in self.descendants(id)? {
                let task = self.task(descendant)?;
                self.terminate_one(task)?;
            }
        }
        Ok(outcome)
    }

    pub(super) fn terminate_one(&mut self, mut task: TaskRecord) -> Result<ActOutcome, R::Error> {
        if task.status.after(StatusCause::Terminate).is_some() {
            if !self.rows.has_class(&task.queue, &task.class)? {
                return self.terminate_classless(task);
            }
            self.change_status(&mut task, StatusCause::Terminate)?;
            // Steps that were lost or refused before do not count against the shutdown.
            (task.lost_steps, task.refused_steps) = (0, 0);
            self.give_entry(&mut task)?;
            self.rows.put_task(&task)?;
        }
        Ok(ActOutcome::Done)
    }

    /// All tasks below a task, parents before their children.
    pub(super) fn descendants(&mut self, root: TaskId) -> Result<Vec<TaskId>, R::Error> {
        let mut found = Vec::new();
        let mut open = vec![root];
        while let Some(parent) = open.pop() {
            let mut after = None;
            loop {
                let page = self.rows.children(parent, after.as_ref(), CHILDREN_PAGE)?;
                found.extend(page.iter().map(|(_, child)| *child));
                open.extend(page.iter().map(|(_, child)| *child));
                if found.len() > TREE_TASKS_MAX {
                    let (what, found) = ("tasks below a task", found.len());
                    return Err(TaskRefusal::TooLarge { what, found, limit: TREE_TASKS_MAX }.into());
                }
                match page.len() < CHILDREN_PAGE {
                    true => break,
                    false => after = page.into_iter().next_back().map(|(name, _)| name),
                }
            }
        }
        Ok(found)
    }
}
