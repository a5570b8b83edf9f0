//! Turns the end of a process into a report for the node.

use cronhold_core::command::{ExitOutcome, ProgramReport};
use cronhold_core::plugin::{MessageReader, PluginVerdict, judge};
use cronhold_core::record::{self, OutputSummary, ResolvedProgram, Run};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_keeper::{ProcessExit, ProgramEnd};

use crate::output::SecretMask;

/// What was read of the messages of a plug-in until its end.
#[derive(Debug)]
pub struct PluginEnd {
    pub(crate) messages: MessageReader,
    /// What its reason must not show.
    pub(crate) secrets: SecretMask,
}

/// A signal without a name is reported as an exit code, as shells do: its number and this.
const SIGNAL_CODE: i32 = 128;

/// A process has ended. Without a run only exit code 0 is a success.
pub(super) fn ended(
    run: Option<&Run>,
    end: ProgramEnd,
    written: OutputSummary,
    plugin: Option<&PluginEnd>,
) -> ProgramReport {
    let by_signal = |number| Signal::from_number(number).ok_or(SIGNAL_CODE + number);
    let ended = match end.exit {
        ProcessExit::Code(code) => Err(code),
        ProcessExit::Signal(number) => by_signal(number),
    };
    let (success, reason, exit) = match ended {
        Ok(signal) => (false, Some(Reason::Signal(signal)), record::ProgramExit::Signal(signal)),
        Err(code) => (is_success(run, code), Some(Reason::ExitCode(code)), record::ProgramExit::Code(code)),
    };
    let (success, reason) = match (plugin, reason) {
        (Some(plugin), Some(reason)) => plugin.judge(success, &reason),
        (_, reason) => (success, reason),
    };
    // A plain success has no reason.
    let reason = reason.filter(|reason| *reason != Reason::ExitCode(0) || !success);
    // As with a stop, the cause of the end is more informative than the exit code.
    let reason = if end.by_lease { Some(Reason::LockLost) } else { reason };
    ProgramReport::Ended(ExitOutcome { success, reason, exit: Some(exit), written: Some(written), response: None })
}

impl PluginEnd {
    /// Decides by its messages, and by what its exit alone would mean.
    fn judge(&self, success: bool, exit: &Reason) -> (bool, Option<Reason>) {
        let PluginVerdict { success, reason } = judge(&self.messages, exit, success);
        let reason = reason.map(|reason| match reason {
            Reason::Said(text) => Reason::Said(self.secrets.hide_text(&text)),
            Reason::Plugin(text) => Reason::Plugin(self.secrets.hide_text(&text)),
            other => other,
        });
        (success, reason)
    }
}

/// A process was stopped before it was started.
pub(super) fn never_started(signal: Signal) -> ProgramReport {
    ProgramReport::Ended(ExitOutcome {
        success: false,
        reason: Some(Reason::Signal(signal)),
        exit: None,
        written: None,
        response: None,
    })
}

fn is_success(run: Option<&Run>, code: i32) -> bool {
    let Some(ResolvedProgram::Process(process)) = run.and_then(|run| run.work.as_ref()) else { return code == 0 };
    u8::try_from(code).is_ok_and(|code| process.success_codes.contains(&code))
}
