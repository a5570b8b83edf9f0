//! Leases steps. Before that, tasks whose time has come get a place in their queue, and expired leases are taken back.

use cronhold_core::task::limits::{LOST_STEPS_MAX, STEPS_PER_MINUTE_MAX};
use cronhold_core::task::{JsonObject, StatusCause, StepId, StepLease, TaskId, TaskRecord, TaskStatus};
use cronhold_schedule::Instant;

use super::super::port::{LeaseClass, LeaseRequest, LeasedStep, StepCall};
use super::super::process::ProcessHeartbeat;
use super::super::rows::TaskRows;
use super::super::window::read_window;
use super::{ExecuteContext, TaskEffects, UnitExecutor, context_of_task};

/// Tasks of each kind that one lease takes care of before it leases: due tasks and expired leases. Further ones wait for
/// the next lease.
const CARE_MAX: usize = 64;

/// A step that is leased, before its window is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenStep {
    pub task: TaskId,
    pub step: StepId,
    pub call: StepCall,
    pub is_first: bool,
}

/// Leases steps.
pub fn execute_lease<R: TaskRows>(
    rows: &mut R,
    request: &LeaseRequest,
    context: ExecuteContext,
) -> Result<(Vec<LeasedStep>, TaskEffects), R::Error> {
    let (taken, effects) = take_steps(rows, request, context)?;
    // The windows are read last, because messages about the leases may have been written to these very tasks.
    let mut leased = Vec::with_capacity(taken.len());
    for TakenStep { task, step, call, is_first } in taken {
        if let Some(window) = read_window(rows, task, &request.limits)? {
            leased.push(LeasedStep { step, call, is_first, window });
        }
    }
    Ok((leased, effects))
}

/// Leases steps for a store that reads their windows by itself, at the same instant or later.
pub fn take_steps<R: TaskRows>(
    rows: &mut R,
    request: &LeaseRequest,
    context: ExecuteContext,
) -> Result<(Vec<TakenStep>, TaskEffects), R::Error> {
    let mut executor = UnitExecutor::of_store(rows, context, JsonObject::new());
    executor.queue_due_tasks()?;
    executor.take_back_expired_steps()?;
    let mut taken = Vec::new();
    for step in &request.steps {
        if !executor.has_room()? {
            break;
        }
        match executor.lease_next(request, *step)? {
            Some(leased) => taken.push(leased),
            None => break,
        }
    }
    Ok((taken, executor.finish()?))
}

/// Renews the leases of steps, and returns those that are lost.
pub(super) fn renew_leases<R: TaskRows>(
    rows: &mut R,
    beat: &ProcessHeartbeat,
    now: Instant,
) -> Result<Vec<StepId>, R::Error> {
    let mut lost = Vec::new();
    for (id, step) in &beat.held {
        match rows.task(*id)?.filter(|task| task.lease.is_some_and(|lease| lease.step == *step)) {
            Some(mut task) => {
                task.lease = Some(StepLease { step: *step, until: now.plus(beat.lease) });
                rows.put_task(&task)?;
            }
            None => lost.push(*step),
        }
    }
    Ok(lost)
}

impl<R: TaskRows> UnitExecutor<'_, R> {
    /// Delivers the messages about what was done, and returns whether this commit has room for more.
    fn has_room(&mut self) -> Result<bool, R::Error> {
        self.deliver_messages()?;
        Ok(!self.deliveries.is_exceeded())
    }

    fn queue_due_tasks(&mut self) -> Result<(), R::Error> {
        for id in self.rows.due(self.context.now, CARE_MAX)? {
            let mut task = self.task(id)?;
            task.run_at = None;
            if task.status.is_pending() {
                self.give_entry(&mut task)?;
            }
            self.rows.put_task(&task)?;
        }
        Ok(())
    }

    fn take_back_expired_steps(&mut self) -> Result<(), R::Error> {
        for id in self.rows.expired(self.context.now, CARE_MAX)? {
            let mut task = self.task(id)?;
            self.item_context = context_of_task(id);
            task.lost_steps += 1;
            let gives_up = task.lost_steps >= LOST_STEPS_MAX;
            if gives_up {
                self.log_error(&format!("the workers of {LOST_STEPS_MAX} steps in a row were lost"), None);
                task.lost_steps = 0;
            }
            self.release(task, if gives_up { StatusCause::GiveUp } else { StatusCause::GiveBack }, gives_up)?;
            if !self.has_room()? {
                break;
            }
        }
        self.item_context = JsonObject::new();
        Ok(())
    }

    /// Leases the step that has waited longest among those of the classes.
    fn lease_next(&mut self, request: &LeaseRequest, step: StepId) -> Result<Option<TakenStep>, R::Error> {
        loop {
            let Some((class, id)) = self.first_ready_of(request)? else { return Ok(None) };
            let mut task = self.task(id)?;
            (task.entry, task.run_at) = (None, None);
            let call = match task.status {
                TaskStatus::Queued => StepCall::Perform,
                TaskStatus::Terminating => StepCall::Shutdown,
                // A status that was changed by hand.
                _ => {
                    self.rows.put_task(&task)?;
                    continue;
                }
            };
            if call == StepCall::Perform && !self.count_step(&mut task) {
                self.item_context = context_of_task(id);
                self.log_error("the task was terminated because it made too many steps in a minute", None);
                self.rows.put_task(&task)?;
                self.terminate_one(task)?;
                self.item_context = JsonObject::new();
                continue;
            }
            let is_first = task.ran_at.is_none();
            let has_startup = is_first && class.has_startup;
            if call == StepCall::Perform && !has_startup {
                task.ran_at = Some(self.context.now);
            }
            task.lease = Some(StepLease { step, until: self.context.now.plus(request.lease) });
            self.change_status(&mut task, StatusCause::Lease)?;
            self.rows.put_task(&task)?;
            return Ok(Some(TakenStep { task: id, step, call, is_first }));
        }
    }

    fn first_ready_of<'q>(&mut self, request: &'q LeaseRequest) -> Result<Option<(&'q LeaseClass, TaskId)>, R::Error> {
        let mut first: Option<(u64, TaskId, &LeaseClass)> = None;
        for class in &request.classes {
            if let Some((entry, id)) = self.rows.first_ready(&request.queue, &class.name)?
                && first.is_none_or(|(known, _, _)| entry < known)
            {
                first = Some((entry, id, class));
            }
        }
        Ok(first.map(|(_, id, class)| (class, id)))
    }

    /// Counts a step in the present minute. Returns false if there are too many.
    fn count_step(&mut self, task: &mut TaskRecord) -> bool {
        let minute = self.context.now.secs().div_euclid(60);
        task.rate_count = if task.rate_minute == minute { task.rate_count + 1 } else { 1 };
        task.rate_minute = minute;
        task.rate_count <= STEPS_PER_MINUTE_MAX
    }
}
