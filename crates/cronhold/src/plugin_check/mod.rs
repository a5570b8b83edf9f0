//! `cronhold plugin check`: starts an executable as the keeper would, with an example message, and reports what is wrong
//! with what it writes and with how it ends.

mod process;

use std::collections::BTreeMap;
use std::io::Write;

use cronhold_cli::{CliError, ExitStatus, PluginCheckArgs, PluginTrialEvent, TrialPrinter};
use cronhold_core::plugin::{
    MessageReader, PluginKind, PluginOutcome, PluginResult, PluginVerdict, judge, start_message,
};
use cronhold_core::record::Run;
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_core::{Args, JobId, JobUid, RunId, RunNumber, State};
use cronhold_schedule::Span;

use self::process::{PluginProcess, ProcessEvent, ProcessStream};
use crate::clock;

/// How long a program is left alone before it is stopped, if it writes nothing.
const FIRST_LINE_WAIT: Span = Span::from_secs(1);
/// How long the streams of a plug-in that has ended are read, if its descendants keep them open.
const STREAMS_WAIT: Span = Span::from_millis(500);
/// How long a plug-in that was sent SIGKILL may take to end.
const KILL_WAIT: Span = Span::from_secs(5);
/// The job of the example run.
const JOB: &str = "plugin-check";

/// Tries a plug-in.
pub fn check(args: &PluginCheckArgs, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
    let (kind, timeout, grace) = (args.kind(), args.timeout()?, args.grace()?);
    let (run, settings) = (example_run(args.run_args()?)?, args.settings()?);
    let message = start_message(kind, &run, &settings);
    let mut printer = args.printer(out);
    if args.command.len() > 1 {
        let text = "a job file names only the executable; it passes `settings` instead of arguments".to_owned();
        printer.event(PluginTrialEvent::Note { text })?;
    }
    let mut trial = PluginTrial::start(args, &run, &message, printer)?;
    let has_ended = trial.wait(timeout, |_| false)?;
    if !has_ended {
        trial.note(format!("it still runs after {timeout}, so it is stopped"))?;
        trial.stop(grace)?;
    }
    let mut printer = trial.conclude()?;
    if has_ended && kind == PluginKind::Program && !args.once {
        let text = "second start, to try the stop".to_owned();
        printer.event(PluginTrialEvent::Note { text })?;
        let mut trial = PluginTrial::start(args, &run, &message, printer)?;
        let has_ended = trial.wait(FIRST_LINE_WAIT, |trial| trial.has_written)?;
        let is_ending = has_ended || trial.messages.result().is_some();
        if is_ending && trial.wait(timeout, |_| false)? {
            trial.note("it ended before it was stopped, so its stop was not tried".to_owned())?;
        } else {
            trial.stop(grace)?;
        }
        printer = trial.conclude()?;
    }
    printer.finish()
}

/// The run that the first message describes.
fn example_run(args: BTreeMap<String, String>) -> Result<Run, CliError> {
    let now = clock::now();
    let id = RunId::from_key(now, JOB);
    let job = JobId::parse(JOB).expect("it is an id");
    let args = args.into_iter().collect::<Args>();
    Ok(Run { args, ..Run::blank(id, RunNumber(1), job, JobUid::from_bits(0), now) })
}

/// One start of a plug-in.
struct PluginTrial<'a> {
    process: PluginProcess,
    messages: MessageReader,
    printer: TrialPrinter<'a>,
    /// The beginning of a line of standard error.
    stderr: Vec<u8>,
    /// Whether it has written anything.
    has_written: bool,
    open_streams: usize,
    exit: Option<Reason>,
    was_stopped: bool,
}

impl<'a> PluginTrial<'a> {
    fn start(
        args: &PluginCheckArgs,
        run: &Run,
        message: &str,
        mut printer: TrialPrinter<'a>,
    ) -> Result<Self, CliError> {
        let env = [
            ("CRONHOLD_RUN_ID", run.id.to_string()),
            ("CRONHOLD_JOB", run.job.to_string()),
            ("CRONHOLD_ATTEMPT", run.attempt.to_string()),
            ("CRONHOLD_NOMINAL_TIME", run.nominal.to_string()),
        ];
        let process = PluginProcess::spawn(&args.command, &env, message.to_owned()).map_err(|error| {
            let message = format!("cannot start `{}`: {error}", args.command[0]);
            CliError::refused(message, "pass the path of an executable file, or the name of one in PATH")
        })?;
        printer.event(PluginTrialEvent::Started { message: message.to_owned() })?;
        Ok(Self {
            process,
            messages: MessageReader::new(args.kind()),
            printer,
            stderr: Vec::new(),
            has_written: false,
            open_streams: ProcessStream::COUNT,
            exit: None,
            was_stopped: false,
        })
    }

    fn note(&mut self, text: String) -> Result<(), CliError> {
        Ok(self.printer.event(PluginTrialEvent::Note { text })?)
    }

    /// Shows what happens until the plug-in has ended, `is_enough` holds, or the time is over. Returns whether it has
    /// ended.
    fn wait(&mut self, span: Span, is_enough: fn(&Self) -> bool) -> Result<bool, CliError> {
        let until = clock::uptime().plus(span);
        while self.exit.is_none() && !is_enough(self) {
            let Some(event) = self.process.next(until.minus(clock::uptime())) else { return Ok(false) };
            self.receive(event)?;
        }
        if self.exit.is_none() {
            return Ok(false);
        }
        while self.open_streams > 0 {
            let Some(event) = self.process.next(STREAMS_WAIT) else { break };
            self.receive(event)?;
        }
        Ok(true)
    }

    fn receive(&mut self, event: ProcessEvent) -> Result<(), CliError> {
        let mut events = Vec::new();
        match event {
            ProcessEvent::Wrote(ProcessStream::Output, bytes) => {
                self.has_written = true;
                self.messages.read(&bytes, &mut |event| events.push(PluginTrialEvent::from(event)));
            }
            ProcessEvent::Wrote(ProcessStream::Error, bytes) => {
                self.stderr.extend(bytes);
                while let Some(end) = self.stderr.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.stderr.drain(..=end).collect();
                    events.push(stderr_line(&line));
                }
            }
            ProcessEvent::Closed => self.open_streams -= 1,
            ProcessEvent::Ended(exit) => self.exit = Some(exit),
        }
        Ok(events.into_iter().try_for_each(|event| self.printer.event(event))?)
    }

    /// Stops the plug-in as the keeper does: SIGTERM to its process group, and SIGKILL after the grace period.
    fn stop(&mut self, grace: Span) -> Result<(), CliError> {
        self.was_stopped = true;
        let term = Signal::TERM;
        self.process.signal(term);
        self.printer.event(PluginTrialEvent::Signalled { signal: term.to_string() })?;
        if !self.wait(grace, |_| false)? {
            let problem = format!("it did not end within {grace} after {term}; a run would be killed now");
            self.printer.event(PluginTrialEvent::Problem { problem })?;
        }
        self.process.signal(Signal::KILL);
        self.wait(KILL_WAIT, |_| false).map(drop)
    }

    /// Shows how the plug-in has ended, and what is wrong with that.
    fn conclude(mut self) -> Result<TrialPrinter<'a>, CliError> {
        if !self.stderr.is_empty() {
            let line = stderr_line(&self.stderr);
            self.printer.event(line)?;
        }
        let mut last = Vec::new();
        self.messages.finish(&mut |event| last.push(PluginTrialEvent::from(event)));
        last.into_iter().try_for_each(|event| self.printer.event(event))?;
        let exit = self.exit.take().unwrap_or(Reason::KeeperLost);
        let is_success = exit == Reason::ExitCode(0);
        let verdict = judge(&self.messages, &exit, is_success);
        let has_result = self.messages.result().is_some();
        let meaning = match self.was_stopped {
            true => stopped(verdict.success),
            false => meaning(self.messages.kind(), &verdict),
        };
        self.printer.event(PluginTrialEvent::Ended { exit: exit.to_string(), meaning })?;
        let claims = |result: &PluginResult| matches!(result.outcome, PluginOutcome::Success | PluginOutcome::Holds);
        let contradicts = !verdict.success && self.messages.result().is_some_and(claims);
        let problem = match (has_result, self.messages.kind()) {
            _ if contradicts && !self.was_stopped => Some("its exit contradicts its result".to_owned()),
            (false, PluginKind::Condition) => Some("a condition without a result does not hold".to_owned()),
            (false, PluginKind::Program) if !is_success && !self.was_stopped => {
                Some(format!("it ended with {exit} and without a result"))
            }
            _ => None,
        };
        if let Some(problem) = problem {
            self.printer.event(PluginTrialEvent::Problem { problem })?;
        } else if !has_result && !self.was_stopped {
            self.note("without a result, the exit code decides".to_owned())?;
        }
        Ok(self.printer)
    }
}

/// What the end of a plug-in that was stopped means for a run.
fn stopped(success: bool) -> String {
    let state = if success { State::Success } else { State::Failure };
    format!("a run that is stopped would be `{}`", state.name())
}

/// What the end of a plug-in means for a run.
fn meaning(kind: PluginKind, verdict: &PluginVerdict) -> String {
    let reason = verdict.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let state = match &verdict.reason {
        _ if kind == PluginKind::Condition && verdict.success => return "the condition holds".to_owned(),
        _ if kind == PluginKind::Condition => "the condition does not hold",
        _ if verdict.success => "a run would be `success`",
        Some(reason) if !reason.fits(State::Failure) => "a run would be `error`",
        _ => "a run would be `failure`",
    };
    format!("{state}{reason}")
}

fn stderr_line(bytes: &[u8]) -> PluginTrialEvent {
    PluginTrialEvent::Stderr { text: String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned() }
}
