//! Commands that go into the next batch: those that the node itself wants, those that lost a conflict, and reports of
//! programs that the store has not accepted yet.

use std::collections::VecDeque;

use cronhold_core::RunId;
use cronhold_core::command::{Command, ProgramReport};
use cronhold_core::record::Actor;
use cronhold_schedule::Span;

use crate::intake::{RequestError, RequestReply};
use crate::plan::DueItem;

/// Commands that go into the next batch.
#[derive(Debug, Default)]
pub(crate) struct PendingCommands {
    own: VecDeque<(Actor, Command)>,
    reports: VecDeque<(RunId, ProgramReport)>,
    retries: VecDeque<PendingCommand>,
    /// Commands that have lost many conflicts, with the uptime at which they are decided again.
    contended: Vec<(Span, PendingCommand)>,
}

/// A command, where it comes from, and how often it was decided.
#[derive(Debug)]
pub(crate) struct PendingCommand {
    pub(crate) actor: Actor,
    pub(crate) command: Command,
    pub(crate) origin: CommandOrigin,
    pub(crate) attempt: usize,
}

/// Where a command comes from, which decides what happens when it fails.
#[derive(Debug)]
pub(crate) enum CommandOrigin {
    /// A request that waits for a reply.
    Request(RequestReply),
    /// The report of a program. It is kept until the store accepts it.
    Report(RunId, ProgramReport),
    /// An item of the plan.
    Planned(DueItem),
    /// The node itself.
    Own,
}

impl PendingCommands {
    /// Adds a command that the node itself wants.
    pub(crate) fn push_own(&mut self, actor: Actor, command: Command) {
        self.own.push_back((actor, command));
    }

    /// Adds a report that the store has failed to accept.
    pub(crate) fn retry_report(&mut self, run: RunId, report: ProgramReport) {
        self.reports.push_back((run, report));
    }

    /// Adds a command that has to be decided again.
    pub(crate) fn retry(&mut self, command: PendingCommand) {
        self.retries.push_back(command);
    }

    /// Adds a command that has lost many conflicts. It is decided again at an uptime.
    pub(crate) fn retry_at(&mut self, at: Span, command: PendingCommand) {
        self.contended.push((at, command));
    }

    /// The time until the next contended command is decided again; `None` if there is none.
    pub(crate) fn next_retry_in(&self, uptime: Span) -> Option<Span> {
        self.contended.iter().map(|(at, _)| at.minus(uptime)).min()
    }

    /// Whether commands wait that are decided before claims.
    pub(crate) fn has_retries(&self) -> bool {
        !(self.retries.is_empty() && self.reports.is_empty())
    }

    /// Takes out retries and reports, and up to `own_max` commands of the node.
    pub(crate) fn take(&mut self, own_max: usize, uptime: Span) -> Vec<PendingCommand> {
        let mut taken: Vec<PendingCommand> = self.retries.drain(..).collect();
        taken.extend(self.contended.extract_if(.., |(at, _)| *at <= uptime).map(|(_, command)| command));
        taken.extend(self.reports.drain(..).map(|(run, report)| PendingCommand::report(run, report)));
        let own = self.own.drain(..self.own.len().min(own_max));
        taken.extend(own.map(|(actor, command)| PendingCommand::new(actor, command, CommandOrigin::Own)));
        taken
    }

    /// Refuses the requests that wait to be decided again, because the node stops.
    pub(crate) fn refuse_requests(&mut self) {
        let contended = self.contended.drain(..).map(|(_, command)| command);
        for command in self.retries.drain(..).chain(contended) {
            if let CommandOrigin::Request(reply) = command.origin {
                reply.send(Err(RequestError::Stopping));
            }
        }
    }
}

impl PendingCommand {
    pub(crate) fn new(actor: Actor, command: Command, origin: CommandOrigin) -> Self {
        Self { actor, command, origin, attempt: 1 }
    }

    pub(crate) fn report(run: RunId, report: ProgramReport) -> Self {
        let command = Command::Report { run, report: report.clone() };
        Self::new(Actor::Program, command, CommandOrigin::Report(run, report))
    }
}
