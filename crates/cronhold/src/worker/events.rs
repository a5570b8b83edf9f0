//! The log of a worker process.

use cronhold_core::task::StepEnding;
use cronhold_store::tasks::BareJobEnding;
use cronhold_worker::{BareJobReport, ExecutableEvent, RuntimeEvent, StepOutcome, StepReport};
use tracing::{debug, error, info, warn};

/// Logs what happens to the executable.
pub(super) fn log_executable(event: &ExecutableEvent) {
    match event {
        ExecutableEvent::Started { pid } => debug!(event = "executable_started", pid, "the executable runs"),
        ExecutableEvent::Log { level, text } => match level.as_str() {
            "error" => error!(event = "executable_log", "{text}"),
            "warn" | "warning" => warn!(event = "executable_log", "{text}"),
            "debug" | "trace" => debug!(event = "executable_log", "{text}"),
            _ => info!(event = "executable_log", "{text}"),
        },
        ExecutableEvent::Stderr { text } => info!(event = "executable_stderr", "{text}"),
        ExecutableEvent::Problem { text } => {
            warn!(event = "executable_problem", "the executable breaks the protocol and is killed: {text}");
        }
        ExecutableEvent::Ended { why, restart: Some(pause), .. } => {
            let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            warn!(event = "executable_ended", pause_ms, "the executable starts again in {pause_ms} ms: {why}");
        }
        ExecutableEvent::Ended { why, restart: None, .. } => debug!(event = "executable_ended", "{why}"),
        ExecutableEvent::Sent { line } => tracing::trace!(event = "executable_sent", "{line}"),
        ExecutableEvent::Received { line } => tracing::trace!(event = "executable_received", "{line}"),
    }
}

/// Logs what happens to steps.
pub(super) fn log_runtime(event: &RuntimeEvent) {
    match event {
        RuntimeEvent::StepEnded(StepReport { task, outcome }) => {
            let task = task.number();
            match outcome {
                StepOutcome::Committed(StepEnding::Failed(failure)) => {
                    warn!(event = "step_failed", task, "a step of task {task} failed: {}", failure.message);
                }
                StepOutcome::Committed(StepEnding::Repeated(failure)) => {
                    warn!(event = "step_repeated", task, "a step of task {task} is repeated: {}", failure.message);
                }
                StepOutcome::Committed(_) => debug!(event = "step_ended", task, "a step of task {task} has ended"),
                StepOutcome::Refused(refusal) => {
                    warn!(event = "step_refused", task, "a step of task {task} is refused: {refusal}");
                }
                StepOutcome::Lost => warn!(event = "step_lost", task, "a step of task {task} has lost its lease"),
            }
        }
        RuntimeEvent::StepNotCommitted { task, error } => {
            let task = task.number();
            error!(event = "step_not_committed", task, "a step of task {task} is not committed: {error}");
        }
        RuntimeEvent::JobEnded(BareJobReport { jid, ending: BareJobEnding::Failed(failure) }) => {
            warn!(event = "job_failed", jid, "job {jid} of a Sidekiq client failed: {}", failure.message);
        }
        RuntimeEvent::JobEnded(BareJobReport { jid, .. }) => {
            debug!(event = "job_ended", jid, "job {jid} of a Sidekiq client has ended");
        }
        RuntimeEvent::JobNotCommitted { jid, error } => {
            error!(event = "job_not_committed", jid, "the end of job {jid} is not committed: {error}");
        }
        RuntimeEvent::RegistrationFailed(error) => warn!(event = "registration_failed", "cannot register: {error}"),
        RuntimeEvent::StepsLost(steps) => {
            let count = steps.len();
            warn!(event = "steps_lost", count, "other workers make {count} steps of this one: heartbeats were late");
        }
        RuntimeEvent::Quieted => info!(event = "worker_quiet", "the worker begins no further steps"),
        RuntimeEvent::LeaseFailed(error) => warn!(event = "lease_failed", "no steps can be leased: {error}"),
    }
}
