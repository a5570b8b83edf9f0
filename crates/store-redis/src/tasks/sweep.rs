//! Finds tasks that other clients have stopped: their entry was removed from the queue, as by a button of Sidekiq's web page,
//! or a Ruby worker died while it performed them. Each heartbeat looks at some tasks.

use cronhold_core::task::{TaskId, TaskRecord, TaskStatus};
use cronhold_schedule::{Instant, Span};
use cronhold_store::tasks::{TaskEffects, TaskRows};

use super::RedisTaskError;
use super::changes::TaskRowSet;
use super::facts::TaskFact;

/// Tasks that one heartbeat looks at.
const TASKS_PER_SWEEP: usize = 100;

/// An entry that was pushed this long ago may be gone. A further one does no harm.
const ENTRY_TRUSTED: Span = Span::from_secs(10);

/// A task that has waited this long in a queue that is empty has lost its entry.
const ENTRY_LOST: Span = Span::from_secs(30);

/// A task that began to run this long ago, and that no step holds, has lost its worker.
const WORKER_LOST: Span = Span::from_secs(60);

/// Whether the entry of a task may have been removed by another client, so that a request for a step pushes another one.
pub(super) fn entry_is_doubtful(task: &TaskRecord, now: Instant) -> bool {
    task.lease.is_none() && task.entry.is_some_and(|entry| is_older(entry, now, ENTRY_TRUSTED))
}

fn is_older(entry: u64, now: Instant, age: Span) -> bool {
    Instant::from_micros(i64::try_from(entry).unwrap_or(i64::MAX)).plus(age) <= now
}

/// What a task lacks.
enum TaskLoss {
    Entry,
    Worker,
}

impl TaskRowSet {
    /// Looks at some tasks from this place. Returns the place for the next sweep.
    pub(super) fn sweep(&mut self, from: u64) -> Result<(u64, TaskEffects), RedisTaskError> {
        let found = self.fact_texts(&TaskFact::SomeTasks(from, TASKS_PER_SWEEP))?;
        let mut effects = TaskEffects::default();
        let Some((next, ids)) = found.split_first() else { return Ok((0, effects)) };
        for id in ids {
            let Ok(id) = TaskId::parse(id) else { continue };
            if self.find_loss(id)?.is_none() {
                continue;
            }
            // From here on the task must not change.
            let Some(mut task) = self.task(id)? else { continue };
            match self.find_loss(id)? {
                Some(TaskLoss::Worker) => task.status = TaskStatus::Queued,
                Some(TaskLoss::Entry) => {}
                None => continue,
            }
            task.entry = Some(self.now.micros().max(1).cast_unsigned());
            effects.arrivals.insert(task.queue.clone());
            self.put_task(&task)?;
        }
        Ok((next.parse().unwrap_or(0), effects))
    }

    /// What a task lacks, as far as it is stored. Tasks that lack nothing may change meanwhile.
    fn find_loss(&mut self, id: TaskId) -> Result<Option<TaskLoss>, RedisTaskError> {
        let Some(stored) = self.peek_task(id) else { return Ok(None) };
        let (task, is_free) = (&stored.task, stored.lock.is_empty() && !stored.has_waiting_worker);
        if task.lease.is_some() || !is_free || task.run_at.is_some() || self.tasks.get(&id).is_some() {
            return Ok(None);
        }
        if task.status == TaskStatus::Running {
            let is_lost = task.ran_at.is_some_and(|at| at.plus(WORKER_LOST) <= self.now);
            return Ok(is_lost.then_some(TaskLoss::Worker));
        }
        let waits = task.status.is_pending() && task.entry.is_none_or(|entry| is_older(entry, self.now, ENTRY_LOST));
        if !waits || !task.created_at.plus(ENTRY_LOST).lt(&self.now) {
            return Ok(None);
        }
        let length = self.fact_text(&TaskFact::QueueLength(task.queue.clone()))?;
        Ok((length.as_deref() == Some("0")).then_some(TaskLoss::Entry))
    }
}
