//! Handles the outcomes of a batch: performs what was committed, replies to requests, and puts back what failed.

use cronhold_core::When;
use cronhold_core::command::ProgramReport;
use cronhold_schedule::Span;
use cronhold_store::{CommandOutcome, Fault, StampedCommand, WriterSession};

use super::NodeLoop;
use super::batch::CommandBatch;
use super::effects::CommitReceipt;
use crate::counters::Counters;
use crate::pending_commands::{CommandOrigin, PendingCommand};
use crate::plan::{DueItem, PlanItem};
use crate::ports::EngineEvent;

/// A claim that is later than this is counted as late.
const LATE: Span = Span::from_secs(1);
/// An item that needs an unreadable record is tried again after this time.
const UNREADABLE_WAIT: Span = Span::from_secs(60);

impl NodeLoop {
    /// Handles the outcomes of a batch.
    pub(super) async fn apply_outcomes(&mut self, outcomes: Vec<Option<CommandOutcome>>, batch: CommandBatch) {
        let CommandBatch { begin, commands, origins } = batch;
        Counters::add(&self.context.counters().turns, 1);
        Counters::add(&self.context.counters().commands, commands.len() as u64);
        let mut store_fault = None;
        for ((command, (origin, attempt)), outcome) in commands.into_iter().zip(origins).zip(outcomes) {
            let outcome = match outcome {
                None if attempt < WriterSession::ATTEMPTS_MAX => {
                    let StampedCommand { stamp, command } = command;
                    let retry = PendingCommand { actor: stamp.actor, command, origin, attempt: attempt + 1 };
                    self.commands.retry(retry);
                    continue;
                }
                outcome => outcome.unwrap_or_else(CommandOutcome::contended),
            };
            match outcome {
                CommandOutcome::Done { done, fences } => {
                    self.observe_done(&command, &origin, done.changes.is_empty());
                    let answer = done.answer.clone();
                    self.apply_commit(&command.stamp, *done, CommitReceipt { sent: begin, fences: &fences }).await;
                    if let CommandOrigin::Request(reply) = origin {
                        reply.send(Ok(answer));
                    }
                }
                CommandOutcome::Rejected(rejection) => match origin {
                    CommandOrigin::Request(reply) => reply.send(Err(rejection.into())),
                    _ => self.emit_dropped(&command, &rejection.to_string()),
                },
                CommandOutcome::Unreadable { key, fault } => {
                    self.context.report_unreadable(Some(&key), &fault.to_string());
                    self.put_aside(&command, origin, &fault);
                }
                CommandOutcome::Failed(fault @ Fault::Permanent(_)) => {
                    self.emit_dropped(&command, &fault.to_string());
                    self.put_aside(&command, origin, &fault);
                }
                CommandOutcome::Failed(fault) => {
                    self.put_back(&command, origin, &fault);
                    store_fault = Some(fault);
                }
            }
        }
        self.record_store_result(store_fault.as_ref());
    }

    /// Counts a late claim, and reports a program's report that came too late to change anything.
    fn observe_done(&self, command: &StampedCommand, origin: &CommandOrigin, is_unchanged: bool) {
        match origin {
            CommandOrigin::Planned(DueItem { item: PlanItem::Fire(..), due: When::At(due), .. }) => {
                let late = command.stamp.at.since(*due);
                if late > LATE {
                    Counters::add(&self.context.counters().late, 1);
                    Counters::raise(&self.context.counters().latest_ms, late.millis());
                }
            }
            CommandOrigin::Report(run, report) if is_unchanged && !matches!(report, ProgramReport::Launched) => {
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
