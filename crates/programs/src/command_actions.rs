//! Commands of actions. They run under the keeper like programs of runs, with the settings of the job, and with an id
//! that only they have.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::command::{DeliveryResult, ProgramReport};
use cronhold_core::decide::LAUNCH_WITHIN;
use cronhold_core::job::ActionKind;
use cronhold_core::policy::delivery::attempt_timeout;
use cronhold_core::record::{
    ActionId, ActionRecord, CommandLine, ResolvedAction, ResolvedProcess, ResolvedProgram, Run,
};
use cronhold_core::{JobUid, RunNumber, State};
use cronhold_engine::LaunchRequest;
use cronhold_schedule::Span;

use crate::delivery::DeliveryReport;

/// The commands that this daemon has started.
#[derive(Debug, Default)]
pub(crate) struct CommandActions {
    /// The action and the attempt of each command, by the id under which the keeper knows it.
    started: BTreeMap<RunId, (ActionId, u32)>,
}

impl CommandActions {
    /// The launch of an attempt; `None` if it was launched before, or the action is not a command.
    pub(crate) fn launch(&mut self, action: &ActionRecord, uptime: Span) -> Option<LaunchRequest> {
        let ResolvedAction::Command(process) = &action.work else { return None };
        // A crash may repeat an attempt, never its id.
        let id = RunId::from_key(action.created, &format!("{} {}", action.id, action.attempts));
        if self.started.insert(id, (action.id, action.attempts)).is_some() {
            return None;
        }
        let number = RunNumber(u64::from(action.attempts));
        let blank = Run::blank(id, number, action.job.clone(), JobUid::from_bits(0), action.created);
        let work = Some(ResolvedProgram::Process(Box::new(naming_the_run(process, action.id.run))));
        let run = Run { state: State::Starting, work, ..blank };
        let kill_at = Some(uptime.plus(attempt_timeout(ActionKind::Command)));
        Some(LaunchRequest { run: Arc::new(run), fence: None, launch_by: uptime.plus(LAUNCH_WITHIN), kill_at })
    }

    /// Whether the keeper's program with this id is the command of an action.
    pub(crate) fn contains(&self, id: RunId) -> bool {
        self.started.contains_key(&id)
    }

    /// The result of a command, if the report is its last one.
    pub(crate) fn finish(&mut self, id: RunId, report: &ProgramReport) -> Option<DeliveryReport> {
        let result = match report {
            ProgramReport::Launched
            | ProgramReport::TaskStarted(_)
            | ProgramReport::Progress(_)
            | ProgramReport::LockLost => return None,
            ProgramReport::Ended(outcome) if outcome.success => DeliveryResult::Delivered,
            ProgramReport::Ended(outcome) => {
                let reason = outcome.reason.as_ref().map_or_else(|| "failed".to_owned(), ToString::to_string);
                let last = outcome.written.as_ref().and_then(|written| written.tail.last());
                DeliveryResult::Failed(last.map_or_else(|| reason.clone(), |last| format!("{reason}: {last}")))
            }
            ProgramReport::NotLaunched(why) => DeliveryResult::Failed(format!("not launched: {why}")),
            ProgramReport::Lost => DeliveryResult::Failed("its result is unknown".to_owned()),
            ProgramReport::KeeperLost => DeliveryResult::Failed("the keeper was lost".to_owned()),
        };
        let (action, attempt) = self.started.remove(&id)?;
        Some(DeliveryReport { action, attempt, result })
    }
}

/// Lets the command see the id of the run that caused it. The keeper finds processes by the id in their first
/// environment, which is the id of the command itself.
pub(crate) fn naming_the_run(process: &ResolvedProcess, run: RunId) -> ResolvedProcess {
    let command = match &process.command {
        CommandLine::Shell { text, shell } => {
            CommandLine::Shell { text: format!("export CRONHOLD_RUN_ID={run}\n{text}"), shell: shell.clone() }
        }
        exec => exec.clone(),
    };
    ResolvedProcess { command, ..process.clone() }
}

#[cfg(test)]
mod tests {
    use cronhold_core::JobId;
    use cronhold_core::command::ExitOutcome;
    use cronhold_core::job::RunEvent;
    use cronhold_core::record::{ActionStatus, OutputSummary};
    use cronhold_core::run::Reason;
    use cronhold_schedule::Instant;

    use super::*;

    fn action(attempts: u32) -> ActionRecord {
        let process = ResolvedProcess::plain(CommandLine::Shell { text: "page me".to_owned(), shell: None });
        ActionRecord {
            id: ActionId::new(RunId::from_key(Instant::EPOCH, "r"), 0),
            job: JobId::parse("j").expect("an id"),
            event: RunEvent::Finished,
            created: Instant::EPOCH,
            work: ResolvedAction::Command(Box::new(process)),
            attempts,
            failures: 0,
            error: None,
            status: ActionStatus::Done { at: Instant::EPOCH },
        }
    }

    #[test]
    fn attempt_is_launched_once_with_an_id_of_its_own() {
        let mut commands = CommandActions::default();
        let first = commands.launch(&action(1), Span::from_secs(9)).expect("a launch");
        assert_eq!(commands.launch(&action(1), Span::from_secs(9)), None);
        let second = commands.launch(&action(2), Span::from_secs(9)).expect("a launch");
        assert!(first.run.id != second.run.id && first.run.id != action(1).id.run);
        assert_eq!((first.launch_by, first.kill_at), (Span::from_secs(19), Some(Span::from_secs(309))));
        let Some(ResolvedProgram::Process(process)) = &first.run.work else { panic!("{first:?}") };
        let text = format!("export CRONHOLD_RUN_ID={}\npage me", action(1).id.run);
        assert_eq!(process.command, CommandLine::Shell { text, shell: None });
    }

    #[test]
    fn last_report_of_a_command_is_the_result_of_its_attempt() {
        let failed = |tail: &[&str]| {
            let tail = tail.iter().map(|line| (*line).to_owned()).collect();
            let written = Some(OutputSummary { bytes: 1, tail, stderr: None });
            ExitOutcome { success: false, reason: Some(Reason::ExitCode(3)), exit: None, written, response: None }
        };
        for (report, expected) in [
            (ProgramReport::Launched, None),
            (ProgramReport::Ended(ExitOutcome::SUCCESS), Some(DeliveryResult::Delivered)),
            (ProgramReport::Ended(failed(&[])), Some(DeliveryResult::Failed("exit code 3".to_owned()))),
            (ProgramReport::Ended(failed(&["a", "b"])), Some(DeliveryResult::Failed("exit code 3: b".to_owned()))),
            (
                ProgramReport::NotLaunched("no such file".to_owned()),
                Some(DeliveryResult::Failed("not launched: no such file".to_owned())),
            ),
        ] {
            let mut commands = CommandActions::default();
            let id = commands.launch(&action(4), Span::ZERO).expect("a launch").run.id;
            let found = commands.finish(id, &report);
            assert_eq!(
                found.as_ref().map(|report| (report.attempt, &report.result)),
                expected.as_ref().map(|result| (4, result))
            );
            assert_eq!(commands.contains(id), expected.is_none());
        }
    }
}
