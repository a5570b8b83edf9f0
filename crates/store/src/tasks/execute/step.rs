//! Carries out a unit, and ends the step that it belongs to.

use cronhold_core::task::limits::{REFUSED_STEPS_MAX, STATE_BYTES_MAX, STATE_FIELDS_MAX};
use cronhold_core::task::log::PortLog;
use cronhold_core::task::{
    ActOutcome, Channel, StatusCause, StepEnding, StepError, StepId, TaskId, TaskRecord, TaskRefusal, TaskStatus,
    TaskUnit, UnitOrigin,
};
use cronhold_schedule::Span;

use super::super::port::TaskReceipt;
use super::super::rows::{OnceRecord, TaskCounter, TaskRows};
use super::{ExecuteContext, TaskEffects, UnitExecutor, context_of_task};

/// How long a request with a key takes effect once.
const ONCE_TTL: Span = Span::from_secs(24 * 3_600);

/// Expired keys that are deleted when one is added.
const EXPIRED_KEYS_MAX: usize = 4;

/// Carries out a unit. If it is refused, the caller rolls back what was done, and calls [`end_refused_step`].
pub fn execute_unit<R: TaskRows>(
    rows: &mut R,
    unit: &TaskUnit,
    context: ExecuteContext,
) -> Result<(TaskReceipt, TaskEffects), R::Error> {
    unit.check()?;
    let mut executor = UnitExecutor::new(rows, context, unit.context.clone());
    let receipt = match &unit.origin {
        UnitOrigin::Request { key: None } => TaskReceipt::Committed(executor.run_request(unit)?),
        UnitOrigin::Request { key: Some(key) } => executor.run_once(unit, key)?,
        UnitOrigin::Step { task, step, ending } => executor.run_step(unit, *task, *step, ending)?,
    };
    executor.check_states()?;
    Ok((receipt, executor.finish()?))
}

/// Ends the step of a refused unit: the step is repeated if that can help, and fails otherwise or after too many
/// attempts. Does nothing for a request, and for a step that has lost its lease.
pub fn end_refused_step<R: TaskRows>(
    rows: &mut R,
    unit: &TaskUnit,
    refusal: &TaskRefusal,
    context: ExecuteContext,
) -> Result<TaskEffects, R::Error> {
    let UnitOrigin::Step { task: id, step, ending } = &unit.origin else { return Ok(TaskEffects::default()) };
    let Some(mut task) = rows.task(*id)?.filter(|task| task.lease.is_some_and(|lease| lease.step == *step)) else {
        return Ok(TaskEffects::default());
    };
    let mut executor = UnitExecutor::of_store(rows, context, context_of_task(*id));
    // A task that was terminated during its step goes on with its shutdown, whatever has become of the step.
    let has_shutdown_ahead = task.status == TaskStatus::Terminating && !matches!(ending, StepEnding::ShutDown(_));
    if !refusal.may_pass_later() && !has_shutdown_ahead {
        task.refused_steps = REFUSED_STEPS_MAX;
    }
    executor.repeat_step(task, &refusal.to_string())?;
    executor.finish()
}

impl<R: TaskRows> UnitExecutor<'_, R> {
    fn run_acts(&mut self, unit: &TaskUnit) -> Result<Vec<ActOutcome>, R::Error> {
        unit.acts.iter().map(|act| self.act(act)).collect()
    }

    /// Checks the size of each state that the unit has added to.
    fn check_states(&mut self) -> Result<(), R::Error> {
        for task in std::mem::take(&mut self.changed_states) {
            let (fields, bytes) = self.rows.state_size(task)?;
            for (what, found, limit) in [
                ("fields of the state of a task", fields, STATE_FIELDS_MAX),
                ("bytes of the state of a task", bytes, STATE_BYTES_MAX),
            ] {
                if found > limit {
                    return Err(TaskRefusal::TooLarge { what, found, limit }.into());
                }
            }
        }
        Ok(())
    }

    /// Carries out a request, and logs what it reads and writes in one entry.
    fn run_request(&mut self, unit: &TaskUnit) -> Result<Vec<ActOutcome>, R::Error> {
        self.log = self.has_receivers(&Channel::log())?.then(PortLog::default);
        let outcomes = self.run_acts(unit)?;
        if let Some(log) = self.log.take() {
            self.publish_log(&log);
        }
        Ok(outcomes)
    }

    /// Carries out a request unless one with this key was carried out before.
    fn run_once(&mut self, unit: &TaskUnit, key: &str) -> Result<TaskReceipt, R::Error> {
        let now = self.context.now;
        if let Some(known) = self.rows.once(key)?.filter(|known| known.expires_at > now) {
            return Ok(TaskReceipt::Repeated(known.created));
        }
        let outcomes = self.run_request(unit)?;
        self.rows.expire_once(now, EXPIRED_KEYS_MAX)?;
        let record = OnceRecord { expires_at: now.plus(ONCE_TTL), created: self.created.clone() };
        self.rows.put_once(key, &record)?;
        Ok(TaskReceipt::Committed(outcomes))
    }

    /// Carries out the unit of a step that holds its task, and ends the step.
    fn run_step(
        &mut self,
        unit: &TaskUnit,
        id: TaskId,
        step: StepId,
        ending: &StepEnding,
    ) -> Result<TaskReceipt, R::Error> {
        let task = self.rows.task(id)?.ok_or(TaskRefusal::StepLost(id))?;
        if task.lease.is_none_or(|lease| lease.step != step) {
            return match task.last_step == Some(step) {
                true => Ok(TaskReceipt::Repeated(Vec::new())),
                false => Err(TaskRefusal::StepLost(id).into()),
            };
        }
        if *ending == StepEnding::Started && task.ran_at.is_some() {
            return Ok(TaskReceipt::Repeated(Vec::new()));
        }
        let outcomes = self.run_acts(unit)?;
        // Acts may have changed the task itself.
        let task = self.task(id)?;
        self.end_step(task, step, ending)?;
        Ok(TaskReceipt::Committed(outcomes))
    }

    fn end_step(&mut self, mut task: TaskRecord, step: StepId, ending: &StepEnding) -> Result<(), R::Error> {
        let (cause, error) = match ending {
            StepEnding::Started => {
                task.ran_at = Some(self.context.now);
                return self.rows.put_task(&task);
            }
            StepEnding::Completed => (StatusCause::Complete, None),
            StepEnding::Suspended => (StatusCause::Suspend, None),
            StepEnding::Failed(error) => (StatusCause::Fail, Some(error)),
            StepEnding::ShutDown(error) => (StatusCause::ShutDown, error.as_ref()),
            StepEnding::GivenBack => (StatusCause::GiveBack, None),
            StepEnding::Repeated(error) => {
                task.last_step = Some(step);
                return self.repeat_step(task, &error.message);
            }
        };
        task.last_step = Some(step);
        (task.lost_steps, task.refused_steps) = (0, 0);
        let is_done = *ending != StepEnding::GivenBack;
        if is_done {
            self.rows.next_number(TaskCounter::Processed)?;
        }
        if matches!(ending, StepEnding::Failed(_)) {
            self.rows.next_number(TaskCounter::Failed)?;
        }
        if let Some(StepError { message, backtrace }) = error {
            self.log_error(message, backtrace.as_deref());
        }
        self.release(task, cause, is_done)
    }

    /// Ends a step that was refused: it is repeated, or given up after too many attempts.
    fn repeat_step(&mut self, mut task: TaskRecord, error: &str) -> Result<(), R::Error> {
        task.refused_steps += 1;
        let gives_up = task.refused_steps > REFUSED_STEPS_MAX;
        if gives_up {
            self.log_error(error, None);
            task.refused_steps = 0;
        }
        self.release(task, if gives_up { StatusCause::GiveUp } else { StatusCause::GiveBack }, gives_up)
    }

    /// Takes the lease from a task, and gives it a place in its queue if something remains to be done. A step that has
    /// to be repeated does not wait for a later time that was requested meanwhile.
    pub(super) fn release(
        &mut self,
        mut task: TaskRecord,
        cause: StatusCause,
        notifies_parent: bool,
    ) -> Result<(), R::Error> {
        task.lease = None;
        self.change_status(&mut task, cause)?;
        match task.status.is_pending() {
            true if cause == StatusCause::GiveBack || task.entry.is_some() || task.run_at.is_none() => {
                self.give_entry(&mut task)?;
            }
            true => {}
            false => (task.entry, task.run_at) = (None, None),
        }
        self.rows.put_task(&task)?;
        if notifies_parent {
            self.request_parent_step(&task, false, None)?;
        }
        Ok(())
    }
}
