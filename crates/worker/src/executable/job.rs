//! Jobs of plain Sidekiq clients, performed by an executable: the call `job` of protocol 1, and a process for each job. A
//! job has no ports, no state and no children, so its message has the args and not much more.

use cronhold_core::task::JsonText;
use serde::{Deserialize, Serialize};

use super::class::ClassSettings;
use super::exchange::{ExchangePeer, StepExchange};
use super::job_acts::push_acts;
use super::message::{LINE_BYTES_MAX, RowChanges, StepNeed};
use super::pool::ExecutablePool;
use super::protocol::{find_id, find_task};
use super::simple::run_process;
use crate::bare::BareJobStep;
use crate::worker::{StepResult, StepStop};

/// The message `step` for a job.
#[derive(Serialize)]
struct JobLine<'a> {
    t: &'static str,
    step: String,
    call: &'static str,
    jid: &'a str,
    class: &'a str,
    queue: &'a str,
    args: &'a JsonText,
    attempt: u64,
    deadline_ms: u64,
}

/// What Sidekiq writes into an entry that has failed.
#[derive(Default, Deserialize)]
struct RetryFields {
    /// 0 after the first failure.
    retry_count: Option<u64>,
}

/// What is special about a job.
struct JobPeer<'a, 'j> {
    job: &'a mut BareJobStep<'j>,
    /// Acts so far, for messages.
    count: usize,
}

impl ExchangePeer for JobPeer<'_, '_> {
    fn apply(&mut self, changes: &RowChanges) -> StepResult {
        push_acts(self.job, &changes.acts, &mut self.count)
    }

    fn answer(&mut self, need: &StepNeed) -> StepResult<Result<JsonText, String>> {
        match need {
            StepNeed::Task(key) => find_task(self.job.store(), key),
            StepNeed::IdOf(name) => find_id(self.job.store(), name),
            StepNeed::Items(_) | StepNeed::Child(_) => {
                Ok(Err("a job of a Sidekiq client has no ports and no children".to_owned()))
            }
        }
    }
}

/// Performs a job by a process that speaks protocol 1.
pub(super) fn perform_job(pool: &ExecutablePool, class: &ClassSettings, job: &mut BareJobStep<'_>) -> StepResult {
    let line = job_line(class, job)?;
    let id = job.job().step;
    let inputs = pool.steps.open(id);
    let place = pool.take_place(id, &inputs);
    if place.is_err() {
        pool.steps.close(id);
    }
    let place = place?;
    pool.send(&place.process.line, line);
    let exchange = StepExchange { pool, process: &place.process, id };
    exchange.run(&mut JobPeer { job, count: 0 }, class.deadline(), &inputs)?;
    place.process.set_succeeded();
    Ok(())
}

/// Performs a job by a process of its own, as a step with `--each`.
pub(super) fn perform_job_by_process(
    pool: &ExecutablePool,
    class: &ClassSettings,
    job: &mut BareJobStep<'_>,
) -> StepResult {
    let line = job_line(class, job)?;
    let (acts, is_done) = run_process(pool, class, job.job().step, line)?;
    if !is_done {
        return Err(StepStop::Suspended);
    }
    push_acts(job, &acts, &mut 0)
}

fn job_line(class: &ClassSettings, job: &BareJobStep<'_>) -> StepResult<String> {
    let job = job.job();
    // A count that is not a number is another client's business.
    let failed = job.entry.to::<RetryFields>().unwrap_or_default().retry_count;
    let line = JobLine {
        t: "step",
        step: job.step.to_string(),
        call: "job",
        jid: &job.jid,
        class: job.class.as_str(),
        queue: job.queue.as_str(),
        args: &job.args,
        attempt: failed.map_or(1, |count| count.saturating_add(2)),
        deadline_ms: class.deadline_ms,
    };
    let text = serde_json::to_string(&line).expect("a message consists of strings and JSON");
    match text.len() < LINE_BYTES_MAX {
        true => Ok(text),
        false => Err(StepStop::Failed("the args of the job are too large for a message".to_owned())),
    }
}
