//! Handles the outcomes of a batch: performs what was committed, replies to requests, and puts back what failed.

use cronhold_core::RunId;
use cronhold_core::When;
use cronhold_core::command::{Command, ProgramReport};
use cronhold_core::decision::{DecidedUnit, Effect};
use cronhold_core::record::RecordKey;
use cronhold_schedule::Span;
use cronhold_store::{CommandOutcome, Fault, StampedCommand, WriterSession};

use super::NodeLoop;
use super::batch::CommandBatch;
use super::effects::CommitReceipt;
use crate::counters::Counters;
use crate::intake::RequestError;
use crate::pending_commands::{CommandOrigin, PendingCommand};
use crate::plan::{DueItem, PlanItem};
use crate::ports::EngineEvent;

/// A claim that is later than this is counted as late.
const LATE: Span = Span::from_secs(1);
/// The shortest wait of a command that has lost many conflicts in a row.
const CONTENDED_WAIT_MIN: Span = Span::from_millis(20);
/// The wait is longer by a random part of this.
const CONTENDED_SPREAD: Span = Span::from_millis(200);
/// A request that has lost this many conflicts, which takes some seconds, is refused.
const REQUEST_ATTEMPTS_MAX: usize = 3 * WriterSession::ATTEMPTS_MAX;
/// An item that needs an unreadable record is tried again after this time.
const UNREADABLE_WAIT: Span = Span::from_secs(60);

impl NodeLoop {
    /// Handles the outcomes of a batch.
    pub(super) async fn apply_outcomes(&mut self, outcomes: Vec<Option<CommandOutcome>>, batch: CommandBatch) {
        let CommandBatch { begin, restarts, commands, origins } = batch;
        Counters::add(&self.context.counters().turns, 1);
        Counters::add(&self.context.counters().commands, commands.len() as u64);
        let mut store_fault = None;
        let (now, uptime) = (self.read_clock(), self.context.uptime());
        for ((command, (origin, attempt)), outcome) in commands.into_iter().zip(origins).zip(outcomes) {
            let Some(outcome) = outcome else {
                Counters::add(&self.context.counters().repeated, 1);
                self.decide_again(command, origin, attempt);
                continue;
            };
            if let CommandOutcome::Failed(Fault::OutcomeUnknown(_)) = outcome {
                self.unconfirmed.record(command.stamp.at, begin);
            }
            match outcome {
                CommandOutcome::Done { done, fences } => {
                    self.observe_done(&command, &origin, done.changes.is_empty());
                    if let CommandOrigin::Planned(DueItem { item: PlanItem::Fire(..), due: When::At(due), .. }) =
                        &origin
                    {
                        self.claim_lag.observe(now.since(*due), uptime);
                    }
                    let answer = done.answer.clone();
                    let over = run_without_wait(&command.command, &done);
                    self.apply_commit(&command.stamp, *done, CommitReceipt { sent: begin, fences: &fences }).await;
                    if let Some(run) = over {
                        self.agenda.forget_waiting(run);
                        self.plan_woken(now);
                    }
                    if let CommandOrigin::Request(reply) = origin {
                        reply.send(Ok(answer));
                    }
                }
                CommandOutcome::Rejected(rejection) => match origin {
                    CommandOrigin::Request(reply) => reply.send(Err(rejection.into())),
                    _ => self.emit_dropped(&command, &rejection.to_string()),
                },
                CommandOutcome::Unreadable(record) => {
                    self.context.report_unreadable(&record);
                    self.put_aside(&command, origin, &Fault::Unreadable(record));
                }
                CommandOutcome::Contended => self.decide_again(command, origin, WriterSession::ATTEMPTS_MAX),
                CommandOutcome::Failed(fault) if !fault.is_transient() => {
                    self.emit_dropped(&command, &fault.to_string());
                    self.put_aside(&command, origin, &fault);
                }
                CommandOutcome::Failed(fault) => {
                    self.put_back(&command, origin, &fault);
                    store_fault = Some(fault);
                }
            }
        }
        if restarts != self.restarts {
            // The batch was decided before the node could start runs again.
            let now = self.read_clock();
            self.plan_postponed(now);
        }
        self.record_store_result(store_fault.as_ref());
    }

    /// Lets a command be decided again that has lost a conflict. After many conflicts in a row it waits for a moment that
    /// differs from node to node, so that one of them succeeds; the other commands of the node do not wait.
    fn decide_again(&mut self, command: StampedCommand, origin: CommandOrigin, attempt: usize) {
        let StampedCommand { stamp, command } = command;
        let attempt = attempt + 1;
        if attempt <= WriterSession::ATTEMPTS_MAX {
            return self.commands.retry(PendingCommand { actor: stamp.actor, command, origin, attempt });
        }
        let random = u64::try_from(self.context.ports.entropy.bits() & u128::from(u32::MAX)).unwrap_or(0);
        let wait = CONTENDED_WAIT_MIN.plus(Span::from_micros(random % CONTENDED_SPREAD.micros()));
        match origin {
            CommandOrigin::Request(reply) if attempt > REQUEST_ATTEMPTS_MAX => {
                reply.send(Err(RequestError::Contended));
            }
            CommandOrigin::Planned(due) => self.agenda.defer(due, stamp.at.plus(wait)),
            origin => {
                let retry = PendingCommand { actor: stamp.actor, command, origin, attempt };
                self.commands.retry_at(self.context.uptime().plus(wait), retry);
            }
        }
    }

    /// Counts a late claim, reports a repair, and reports a program's report that came too late to change anything.
    fn observe_done(&self, command: &StampedCommand, origin: &CommandOrigin, is_unchanged: bool) {
        Counters::add(&self.context.counters().committed, u64::from(!is_unchanged));
        if let Command::RepairJob { job } = &command.command
            && !is_unchanged
        {
            self.report_repair(&RecordKey::Job(job.clone()), Span::ZERO);
        }
        match origin {
            CommandOrigin::Planned(DueItem { item: PlanItem::Fire(..), due: When::At(due), .. }) => {
                let late = command.stamp.at.since(*due);
                if late > LATE {
                    Counters::add(&self.context.counters().late, 1);
                    Counters::raise(&self.context.counters().latest_ms, late.millis());
                }
            }
            CommandOrigin::Report(run, report) if is_unchanged && is_last(report) => {
                self.context.emit(&EngineEvent::ReportIgnored(*run));
            }
            _ => {}
        }
    }

    fn emit_dropped(&self, command: &StampedCommand, reason: &str) {
        self.context.emit(&EngineEvent::CommandDropped { command: &command.command, reason });
    }

    /// Handles a command that failed because the store failed. A request gets an error; other commands are tried again.
    fn put_back(&mut self, command: &StampedCommand, origin: CommandOrigin, fault: &Fault) {
        Counters::add(&self.context.counters().faults, 1);
        if matches!(fault, Fault::OutcomeUnknown(_)) {
            self.store_health.record_unknown_outcome();
        }
        match origin {
            CommandOrigin::Request(reply) => reply.send(Err(fault.clone().into())),
            CommandOrigin::Report(run, report) => self.commands.retry_report(run, report),
            CommandOrigin::Planned(due) => self.agenda.reschedule(due, command.stamp.at),
            CommandOrigin::Own => self.commands.push_own(command.stamp.actor.clone(), command.command.clone()),
        }
    }

    /// Handles a command that would fail again at once. A request gets an error, and a planned item is tried again later.
    fn put_aside(&mut self, command: &StampedCommand, origin: CommandOrigin, fault: &Fault) {
        Counters::add(&self.context.counters().faults, 1);
        match origin {
            CommandOrigin::Request(reply) => reply.send(Err(fault.clone().into())),
            CommandOrigin::Planned(due) => self.agenda.reschedule(due, command.stamp.at.plus(UNREADABLE_WAIT)),
            // The watchdog requests the program of a run again if its report was lost.
            CommandOrigin::Report(..) | CommandOrigin::Own => {}
        }
    }
}

/// Whether a program is over with a report.
fn is_last(report: &ProgramReport) -> bool {
    !matches!(report, ProgramReport::Launched | ProgramReport::TaskStarted(_) | ProgramReport::Progress(_))
}

/// The run that was checked and does not wait: it has not changed, and is not checked again.
fn run_without_wait(command: &Command, done: &DecidedUnit) -> Option<RunId> {
    let Command::Wake { run } = command else { return None };
    let is_checked_again =
        done.effects.iter().any(|effect| matches!(effect, Effect::Wake { run: next, .. } if next == run));
    (done.changes.is_empty() && !is_checked_again).then_some(*run)
}
