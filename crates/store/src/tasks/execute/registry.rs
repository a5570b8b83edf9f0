//! Keeps worker processes and the classes that they register.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cronhold_core::task::{Channel, ClassConfig, ClassName, JsonObject, QueueName};
use cronhold_schedule::Instant;

use super::super::process::{
    CLASS_TTL, HeartbeatReply, PROCESS_TTL, ProcessHeartbeat, ProcessId, ProcessSignal, WorkerProcess,
};
use super::super::rows::TaskRows;
use super::lease::renew_leases;
use super::publish::OutgoingMessage;
use super::{ExecuteContext, TaskEffects, UnitExecutor};

/// Adds a process and its classes, and publishes the classes of the queue. A class stays registered while a live process
/// has it, and for a day after the last one was there, so that a restart of its process ends no task.
pub fn execute_register<R: TaskRows>(
    rows: &mut R,
    process: &WorkerProcess,
    classes: &[(ClassName, ClassConfig)],
    context: ExecuteContext,
) -> Result<TaskEffects, R::Error> {
    let mut executor = UnitExecutor::of_store(rows, context, JsonObject::new());
    let queue = &process.queue;
    executor.rows.put_process(&WorkerProcess { beat_at: context.now, ..process.clone() })?;
    for (class, config) in classes {
        executor.rows.put_class(queue, class, config)?;
    }
    let kept = executor.forget_processes()?;
    let mut registry = JsonObject::new();
    for (class, config) in executor.rows.classes(queue)? {
        match kept.contains(&(queue.clone(), class.clone())) {
            true => registry = registry.with(class.as_str(), config.text),
            false => executor.rows.delete_class(queue, &class)?,
        }
    }
    executor.outbox.push_back(OutgoingMessage::unlogged(Channel::of_workers(queue), registry.to_json()));
    // Tasks of new classes may wait already.
    executor.effects.arrivals.insert(QueueName::clone(queue));
    executor.finish()
}

impl<R: TaskRows> UnitExecutor<'_, R> {
    /// Deletes processes that have been gone for a day, and those that are gone and all of whose classes a later process
    /// has. Returns the classes of the others.
    fn forget_processes(&mut self) -> Result<BTreeSet<(QueueName, ClassName)>, R::Error> {
        let now = self.context.now;
        let mut processes = self.rows.processes()?;
        processes.sort_by_key(|process| Reverse(process.beat_at));
        let mut kept = BTreeSet::new();
        for process in processes {
            let classes = process.classes.iter().map(|class| (process.queue.clone(), class.clone()));
            let classes: BTreeSet<_> = classes.collect();
            let is_old = process.beat_at.plus(CLASS_TTL) <= now;
            match !is_live(&process, now) && (is_old || classes.is_subset(&kept)) {
                true => self.rows.delete_process(&process.id)?,
                false => kept.extend(classes),
            }
        }
        Ok(kept)
    }
}

/// Stores that a worker process has stopped. Its classes stay registered for a day.
pub fn execute_deregister<R: TaskRows>(rows: &mut R, id: &ProcessId, now: Instant) -> Result<(), R::Error> {
    let Some(process) = rows.process(id)? else { return Ok(()) };
    let beat_at = process.beat_at.min(now.minus(PROCESS_TTL));
    rows.put_process(&WorkerProcess { beat_at, signals: Vec::new(), busy: 0, ..process })
}

/// Stores that a process is alive, and renews the leases of its steps. The reply has its next signal.
pub fn execute_heartbeat<R: TaskRows>(
    rows: &mut R,
    beat: &ProcessHeartbeat,
    now: Instant,
) -> Result<HeartbeatReply, R::Error> {
    let lost = renew_leases(rows, beat, now)?;
    let Some(mut process) = rows.process(&beat.process)? else {
        return Ok(HeartbeatReply { lost, signal: None, is_unknown: true });
    };
    process.beat_at = now;
    process.busy = u32::try_from(beat.held.len()).unwrap_or(u32::MAX);
    process.is_quiet = beat.is_quiet;
    let signal = (!process.signals.is_empty()).then(|| process.signals.remove(0));
    rows.put_process(&process)?;
    Ok(HeartbeatReply { lost, signal, is_unknown: false })
}

/// Queues a signal; false if there is no such live process.
pub fn execute_signal<R: TaskRows>(
    rows: &mut R,
    id: &ProcessId,
    signal: ProcessSignal,
    now: Instant,
) -> Result<bool, R::Error> {
    let Some(mut process) = rows.process(id)?.filter(|process| is_live(process, now)) else { return Ok(false) };
    if !process.signals.contains(&signal) {
        process.signals.push(signal);
        rows.put_process(&process)?;
    }
    Ok(true)
}

/// Processes whose heartbeat is recent.
pub fn live_processes<R: TaskRows>(rows: &mut R, now: Instant) -> Result<Vec<WorkerProcess>, R::Error> {
    let processes = rows.processes()?;
    Ok(processes.into_iter().filter(|process| is_live(process, now)).collect())
}

fn is_live(process: &WorkerProcess, now: Instant) -> bool {
    process.beat_at.plus(PROCESS_TTL) > now
}
