//! Jobs of plain Sidekiq clients: they are leased, held and ended beside tasks. While a worker performs one, its entry is in
//! a hash of ours, so that it is not lost with its worker.

use cronhold_core::task::{ClassName, JsonText, QueueName, StepId, TaskRefusal, TaskUnit};
use cronhold_schedule::Instant;
use cronhold_store::tasks::execute::step::execute_unit;
use cronhold_store::tasks::{
    BareJob, BareJobEnd, BareJobEnding, ExecuteContext, LeaseRequest, ProcessId, TaskCounter, TaskEffects, TaskRows,
    TaskUnitError,
};
use serde::{Deserialize, Serialize};

use super::RedisTaskError;
use super::changes::{DirectChange, TaskRowSet};
use super::facts::TaskFact;
use super::keys::TaskKeys;
use super::process_texts::{WorkItem, added_work_commands};
use super::ready::{DueSet, FIRST_DEPTH};
use super::retries::{JobFailure, dead_commands, failure_of};
use super::texts::{QueueEntry, seconds_text};

/// Entries that are moved from `schedule` and `retry`, and leases that are taken back, by one lease.
const CARE_MAX: usize = 64;

/// A bare job in the hash of those that are performed.
#[derive(Debug, Serialize, Deserialize)]
struct HeldBareJob {
    queue: QueueName,
    /// The entry as text.
    entry: String,
    /// Microseconds.
    since: i64,
}

#[derive(Deserialize)]
struct BareEntry {
    class: ClassName,
    jid: serde_json::Value,
    #[serde(default)]
    args: Option<JsonText>,
}

/// What a lease will need.
pub(super) fn wants_of_bare_lease(request: &LeaseRequest) -> Vec<TaskFact> {
    vec![TaskFact::Queue(request.queue.clone(), FIRST_DEPTH)]
}

/// Leases bare jobs of the classes of a worker. What is not an entry of Sidekiq at all is stored in `dead` as it is.
pub(super) fn lease_bare_jobs(
    rows: &mut TaskRowSet,
    request: &LeaseRequest,
    now: Instant,
) -> Result<Vec<BareJob>, RedisTaskError> {
    for set in DueSet::ALL {
        rows.due_tasks(set, now, CARE_MAX)?;
    }
    take_back_lost_jobs(rows, now)?;
    let mut steps = request.steps.iter();
    let mut leased = Vec::new();
    for index in 0.. {
        let Some((entry, text)) = rows.queue_entry_at(&request.queue, index) else { break };
        match entry {
            QueueEntry::Task { .. } => {}
            QueueEntry::Unreadable => {
                rows.direct.put(DirectChange::TakeBareJob(request.queue.clone(), text.clone()), ());
                dead_commands(now, text).into_iter().for_each(|command| rows.add_raw_command(command));
            }
            QueueEntry::Bare { class } => {
                if !request.classes.iter().any(|wanted| wanted.name.as_str() == class) {
                    continue;
                }
                let taken = DirectChange::TakeBareJob(request.queue.clone(), text.clone());
                if rows.direct.get(&taken).is_some() {
                    continue;
                }
                let Some(step) = steps.next() else { break };
                let Some(job) = read_bare_job(&request.queue, *step, &text) else { continue };
                rows.direct.put(taken, ());
                let held = HeldBareJob { queue: job.queue.clone(), entry: job.entry.to_string(), since: now.micros() };
                let held = serde_json::to_string(&held).expect("texts can be JSON");
                let step = job.step.to_string();
                rows.add_key_command("HSET", "cronhold:bare", &[&step, &held]);
                let until = seconds_text(now.plus(request.lease));
                rows.add_key_command("ZADD", "cronhold:bare_leases", &[&until, &step]);
                leased.push(job);
            }
        }
    }
    Ok(leased)
}

fn read_bare_job(queue: &QueueName, step: StepId, text: &[u8]) -> Option<BareJob> {
    let text = std::str::from_utf8(text).ok()?;
    let BareEntry { class, jid, args } = serde_json::from_str(text).ok()?;
    let jid = jid.as_str().map_or_else(|| jid.to_string(), str::to_owned);
    let args = args.unwrap_or_else(|| JsonText::list([]));
    Some(BareJob { step, queue: queue.clone(), class, jid, args, entry: JsonText::parse(text).ok()? })
}

/// Puts entries whose worker was lost back where they are the next ones.
pub(super) fn take_back_lost_jobs(rows: &mut TaskRowSet, now: Instant) -> Result<(), RedisTaskError> {
    for step in rows.fact_texts(&TaskFact::ExpiredBareJobs(seconds_text(now), CARE_MAX))? {
        // A damaged entry does not stop the others.
        let held = rows.held_job(&step).ok().flatten();
        give_back(rows, &step, held.as_ref());
    }
    Ok(())
}

fn give_back(rows: &mut TaskRowSet, step: &str, held: Option<&HeldBareJob>) {
    if let Some(held) = held {
        rows.add_key_command("SADD", "queues", &[held.queue.as_str()]);
        rows.add_key_command("RPUSH", &super::keys::queue_rest(&held.queue), &[&held.entry]);
    }
    forget_job(rows, step);
}

fn forget_job(rows: &mut TaskRowSet, step: &str) {
    rows.add_key_command("HDEL", "cronhold:bare", &[step]);
    rows.add_key_command("ZREM", "cronhold:bare_leases", &[step]);
}

/// Renews leases, and shows in Sidekiq's keys what the process does. Returns the steps that are lost.
pub(super) fn hold_bare_jobs(
    rows: &mut TaskRowSet,
    keys: &TaskKeys,
    process: &ProcessId,
    steps: &[StepId],
    until: Instant,
) -> Result<Vec<StepId>, RedisTaskError> {
    let (mut lost, mut work) = (Vec::new(), Vec::new());
    for step in steps {
        match rows.held_job(&step.to_string())? {
            Some(held) => {
                rows.add_key_command("ZADD", "cronhold:bare_leases", &[&seconds_text(until), &step.to_string()]);
                let since = Instant::from_micros(held.since);
                work.push(WorkItem { step: *step, queue: held.queue, payload: held.entry, since });
            }
            None => lost.push(*step),
        }
    }
    for rest in [":work", ":workers"] {
        added_work_commands(&keys.process(process, rest), &work)
            .into_iter()
            .for_each(|command| rows.add_command(command));
    }
    Ok(lost)
}

/// Ends a bare job together with its acts.
pub(super) fn end_bare_job(
    rows: &mut TaskRowSet,
    end: &BareJobEnd,
    context: ExecuteContext,
    effects: &mut TaskEffects,
) -> Result<(), TaskUnitError> {
    let step = end.step.to_string();
    let to_error = |error: RedisTaskError| match error {
        RedisTaskError::Refused(refusal) => TaskUnitError::Refused(refusal),
        RedisTaskError::Damaged(fault) => TaskUnitError::Fault(fault),
    };
    let Some(held) = rows.held_job(&step).map_err(to_error)? else {
        return Err(
            TaskRefusal::Invalid("the job has lost its lease, or its end was committed before".to_owned()).into()
        );
    };
    let result = match &end.ending {
        BareJobEnding::GivenBack => {
            give_back(rows, &step, Some(&held));
            return Ok(());
        }
        BareJobEnding::Failed(error) => {
            let failure = JobFailure { message: error.message.clone(), backtrace: error.backtrace.clone() };
            fail_job(rows, &held, &failure, context.now);
            Ok(())
        }
        BareJobEnding::Completed => {
            let scope = rows.begin_scope();
            match execute_unit(rows, &TaskUnit::request(end.acts.clone()), context) {
                Ok((_, caused)) => {
                    effects.extend(caused);
                    Ok(())
                }
                Err(error) => {
                    rows.undo_scope(scope);
                    let error = to_error(error);
                    let failure = JobFailure { message: error.to_string(), backtrace: None };
                    fail_job(rows, &held, &failure, context.now);
                    Err(error)
                }
            }
        }
    };
    forget_job(rows, &step);
    rows.next_number(TaskCounter::Processed).map_err(to_error)?;
    result
}

/// Stores a job for its next attempt, or in `dead`, or nowhere, as its entry says.
fn fail_job(rows: &mut TaskRowSet, held: &HeldBareJob, failure: &JobFailure, now: Instant) {
    // A counter of this batch cannot fail.
    let _ = rows.next_number(TaskCounter::Failed);
    for command in failure_of(&held.entry, &held.queue, failure, now) {
        rows.add_raw_command(command);
    }
}

impl TaskRowSet {
    /// A bare job that a step holds.
    fn held_job(&mut self, step: &str) -> Result<Option<HeldBareJob>, RedisTaskError> {
        let Some(text) = self.fact_text(&TaskFact::BareJob(step.to_owned()))? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| RedisTaskError::damaged("cronhold:bare", &error))
    }

    /// Adds a command on a key that is given without the prefix.
    pub(super) fn add_key_command(&mut self, name: &str, key: &str, args: &[&str]) {
        let mut parts = vec![name.as_bytes().to_vec(), key.as_bytes().to_vec()];
        parts.extend(args.iter().map(|arg| arg.as_bytes().to_vec()));
        self.add_raw_command(parts);
    }
}
