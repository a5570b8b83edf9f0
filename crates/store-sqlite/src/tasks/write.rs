//! Requests about tasks on the writer thread. A request is a function on rows; it may be carried out again if the
//! transaction is rolled back, and its result counts when the transaction is durable.

use std::fmt;
use std::sync::Arc;

use cronhold_core::task::TaskUnit;
use cronhold_schedule::Instant;
use cronhold_store::Fault;
use cronhold_store::tasks::execute::step::{end_refused_step, execute_unit};
use cronhold_store::tasks::{ExecuteContext, TaskBoard, TaskEffects, TaskReceipt, TaskUnitError};
use rusqlite::Connection;

use super::{TaskRowError, TaskTransaction, to_fault};
use crate::faults;
use crate::writer::PendingReply;

/// A request about tasks.
pub(crate) trait TaskWrite: Send + fmt::Debug {
    /// The amount of work, in units.
    fn unit_count(&self) -> usize;

    /// Carries out the request within the open transaction.
    fn execute(&mut self, connection: &Connection, now: Instant) -> rusqlite::Result<()>;

    /// Sends the result, which is durable now, and notifies those who wait for its effects.
    fn reply(self: Box<Self>);

    /// Replies with a fault.
    fn fail(self: Box<Self>, fault: &Fault);
}

/// One change as a function.
pub(super) struct TaskChange<T, F> {
    pub(super) board: Arc<TaskBoard>,
    pub(super) work: F,
    pub(super) effects: TaskEffects,
    pub(super) reply: PendingReply<Result<T, Fault>>,
}

/// Units, each of which is carried out by itself.
pub(super) struct TaskUnitWrites {
    pub(super) board: Arc<TaskBoard>,
    pub(super) units: Vec<TaskUnit>,
    pub(super) effects: TaskEffects,
    pub(super) reply: PendingReply<UnitResults>,
}

/// A result for each unit.
pub(super) type UnitResults = Vec<Result<TaskReceipt, TaskUnitError>>;

/// What a change returns, with its effects.
pub(super) type ChangeResult<T> = Result<(T, TaskEffects), TaskRowError>;

impl<T, F> TaskWrite for TaskChange<T, F>
where
    T: Send,
    F: FnMut(&mut TaskTransaction<'_>, ExecuteContext) -> ChangeResult<T> + Send,
{
    fn unit_count(&self) -> usize {
        1
    }

    fn execute(&mut self, connection: &Connection, now: Instant) -> rusqlite::Result<()> {
        let context = ExecuteContext { now, has_listeners: self.board.has_listeners() };
        // An earlier attempt may have been rolled back.
        self.effects = TaskEffects::default();
        let result = isolated(connection, |rows| (self.work)(rows, context))?;
        self.reply.result = Some(match result {
            Ok((result, effects)) => {
                self.effects = effects;
                Ok(result)
            }
            Err(TaskUnitError::Fault(fault)) => Err(fault),
            Err(TaskUnitError::Refused(refusal)) => Err(Fault::Permanent(refusal.to_string())),
        });
        Ok(())
    }

    fn reply(self: Box<Self>) {
        self.board.publish(self.effects);
        self.reply.send();
    }

    fn fail(self: Box<Self>, fault: &Fault) {
        self.reply.send_now(Err(fault.clone()));
    }
}

impl TaskWrite for TaskUnitWrites {
    fn unit_count(&self) -> usize {
        self.units.len().max(1)
    }

    fn execute(&mut self, connection: &Connection, now: Instant) -> rusqlite::Result<()> {
        let context = ExecuteContext { now, has_listeners: self.board.has_listeners() };
        let mut results = Vec::with_capacity(self.units.len());
        self.effects = TaskEffects::default();
        for unit in &self.units {
            let result = isolated(connection, |rows| execute_unit(rows, unit, context))?;
            let result = match result {
                Err(TaskUnitError::Refused(refusal)) => {
                    let ended =
                        isolated(connection, |rows| Ok(((), end_refused_step(rows, unit, &refusal, context)?)))?;
                    ended.and_then(|((), effects)| {
                        self.effects.extend(effects);
                        Err(TaskUnitError::Refused(refusal))
                    })
                }
                other => other.map(|(receipt, effects)| {
                    self.effects.extend(effects);
                    receipt
                }),
            };
            results.push(result);
        }
        self.reply.result = Some(results);
        Ok(())
    }

    fn reply(self: Box<Self>) {
        self.board.publish(self.effects);
        self.reply.send();
    }

    fn fail(self: Box<Self>, fault: &Fault) {
        let results = self.units.iter().map(|_| Err(fault.clone().into())).collect();
        self.reply.send_now(results);
    }
}

/// Carries out one change so that its failure does not affect others. An error of the whole transaction is returned as
/// the outer error.
fn isolated<T>(
    connection: &Connection,
    work: impl FnOnce(&mut TaskTransaction<'_>) -> ChangeResult<T>,
) -> rusqlite::Result<Result<(T, TaskEffects), TaskUnitError>> {
    let execute = |sql: &str| connection.prepare_cached(sql)?.raw_execute().map(drop);
    execute("SAVEPOINT task_unit")?;
    let mut rows = TaskTransaction::new(connection);
    let done = work(&mut rows).and_then(|done| rows.write_changed().map(|()| done));
    let result = match done {
        Ok(done) => Ok(done),
        Err(TaskRowError::Refused(refusal)) => Err(TaskUnitError::Refused(refusal)),
        Err(TaskRowError::Unreadable(error)) => Err(to_fault(&error).into()),
        Err(TaskRowError::Sql(error)) if faults::is_of_one_unit(&error) => {
            Err(Fault::Permanent(format!("cannot store a change of tasks: {error}")).into())
        }
        Err(TaskRowError::Sql(error)) => return Err(error),
    };
    if result.is_err() {
        execute("ROLLBACK TO task_unit")?;
    }
    execute("RELEASE task_unit")?;
    Ok(result)
}

impl<T, F> fmt::Debug for TaskChange<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskChange")
    }
}

impl fmt::Debug for TaskUnitWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskUnitWrites").field("units", &self.units).finish_non_exhaustive()
    }
}
