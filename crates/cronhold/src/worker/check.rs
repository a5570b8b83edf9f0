//! `cronhold worker check`: makes steps of sample tasks in memory by an executable, shows all lines of both sides, and
//! reports what is right and what is wrong.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use cronhold_cli::{CliError, ExitStatus, PluginTrialEvent, TrialPrinter, WorkerCheckArgs};
use cronhold_core::task::{ClassConfig, ClassName, JsonText, NewTask, PortName, StepEnding, TaskId};
use cronhold_schedule::Span;
use cronhold_store::tasks::{MemoryTaskStore, TaskStore, WindowLimits};
use cronhold_worker::{
    ExecutableEvent, ExecutableMode, ExecutableOptions, PreparedExecutable, StepOutcome, WorkerRuntime,
};
use tokio::runtime::Builder;

use super::{failure, launcher, mode};
use crate::clock;

/// The queue of the sample tasks.
const QUEUE: &str = "worker-check";
/// Steps that are made for one sample task.
const STEPS_MAX: usize = 20;

/// Tries an executable.
pub fn check(args: &WorkerCheckArgs, program: &Path, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
    let (sender, events) = channel();
    let mode = mode(&args.used)?;
    let speaks_protocol = mode == ExecutableMode::Protocol;
    let options = ExecutableOptions {
        mode,
        launcher: launcher(program),
        observer: Arc::new(move |event: &ExecutableEvent| drop(sender.send(event.clone()))),
        ..ExecutableOptions::new(QUEUE, args.command.clone())
    };
    let (names, configs, values) = (args.used.class_names()?, args.used.configs()?, args.values()?);
    let mut trial = WorkerTrial { printer: args.printer(out), events, lines: 0, has_ended: false };
    let prepared = match PreparedExecutable::start(options, configs, &names) {
        Ok(prepared) => prepared,
        Err(error) => {
            trial.show_events(false)?;
            trial.problem(error.to_string())?;
            return trial.printer.finish();
        }
    };
    trial.show_events(false)?;
    let classes = prepared.classes().clone();
    let listed: Vec<&str> = classes.keys().map(ClassName::as_str).collect();
    let handshake = if speaks_protocol { "the handshake is right; its " } else { "" };
    trial.note(format!("{handshake}classes: {}", listed.join(", ")))?;
    let store = Arc::new(MemoryTaskStore::new(Arc::new(clock::now)));
    let runtime = prepared.runtime(Arc::clone(&store) as _, Span::from_secs(3_600), |_| ()).map_err(failure)?;
    runtime.register().map_err(failure)?;
    for class in classes.keys() {
        trial.try_class(&runtime, &*store, class, &classes, &args.args()?, &values)?;
    }
    if let Some(class) = classes.keys().next().filter(|_| speaks_protocol) {
        prepared.cancel_unknown_step();
        trial.note("a second task, after a `cancel` for a step that is unknown, which has to be ignored".to_owned())?;
        trial.try_class(&runtime, &*store, class, &classes, &args.args()?, &values)?;
    }
    prepared.quiet();
    prepared.stop();
    trial.show_events(true)?;
    trial.printer.finish()
}

/// One check.
struct WorkerTrial<'a> {
    printer: TrialPrinter<'a>,
    events: Receiver<ExecutableEvent>,
    /// Lines that the executable has written.
    lines: u64,
    has_ended: bool,
}

impl WorkerTrial<'_> {
    fn note(&mut self, text: String) -> Result<(), CliError> {
        Ok(self.printer.event(PluginTrialEvent::Note { text })?)
    }

    fn problem(&mut self, problem: String) -> Result<(), CliError> {
        Ok(self.printer.event(PluginTrialEvent::Problem { problem })?)
    }

    /// Shows what has happened so far. Only at the end may the executable have ended.
    fn show_events(&mut self, is_end: bool) -> Result<(), CliError> {
        while let Ok(event) = self.events.try_recv() {
            match event {
                ExecutableEvent::Started { .. } => {}
                ExecutableEvent::Sent { line } => self.printer.event(PluginTrialEvent::Sent { text: line })?,
                ExecutableEvent::Received { line } => {
                    self.lines += 1;
                    let message = PluginTrialEvent::Message { line: self.lines, kind: "received", text: line };
                    self.printer.event(message)?;
                }
                ExecutableEvent::Log { level, text } => self.note(format!("log {level}: {text}"))?,
                ExecutableEvent::Stderr { text } => self.printer.event(PluginTrialEvent::Stderr { text })?,
                ExecutableEvent::Problem { text } => self.problem(text)?,
                ExecutableEvent::Ended { why, code, .. } => {
                    self.has_ended = true;
                    let meaning = match (is_end, code) {
                        (true, Some(_)) => "it ended after `quiet` and the end of its input",
                        (true, None) => "it was killed",
                        (false, _) => "its steps would be repeated, after a pause",
                    };
                    self.printer.event(PluginTrialEvent::Ended { exit: why, meaning: meaning.to_owned() })?;
                    match (is_end, code) {
                        (true, Some(0)) => {}
                        (true, Some(code)) => self.problem(format!("it ended with exit code {code}, not 0"))?,
                        (true, None) => {
                            self.problem("it did not end within 5 s after the end of its input".to_owned())?;
                        }
                        (false, _) => self.problem("it ended before it was told to".to_owned())?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes the steps of a sample task of a class, and of its children.
    fn try_class(
        &mut self,
        runtime: &WorkerRuntime,
        store: &dyn TaskStore,
        class: &ClassName,
        classes: &BTreeMap<ClassName, JsonText>,
        args: &JsonText,
        values: &[(PortName, JsonText)],
    ) -> Result<(), CliError> {
        let new = NewTask { args: Some(args.clone()), ..NewTask::new(runtime.queue().clone(), class.clone()) };
        let task = runtime.create_task(new).map_err(failure)?;
        let config = classes.get(class).and_then(|config| ClassConfig::parse(config.as_str()).ok());
        for (port, value) in values {
            let has = |config: &ClassConfig| {
                config.inports.contains_key(port) || config.inports.contains_key(&PortName::template())
            };
            if config.as_ref().is_some_and(has) {
                runtime.write(task, port.as_str(), value).map_err(failure)?;
            }
        }
        self.note(format!("task {task} of class {class}"))?;
        for _ in 0..STEPS_MAX {
            let Some(report) = runtime.perform_next().map_err(failure)? else {
                return self.show_result(store, task);
            };
            self.show_events(false)?;
            match report.outcome {
                StepOutcome::Committed(StepEnding::Failed(error) | StepEnding::Repeated(error)) => {
                    self.problem(format!("a step of task {} failed: {}", report.task, error.message))?;
                    return Ok(());
                }
                StepOutcome::Refused(refusal) => {
                    self.problem(format!("a step of task {} is refused: {refusal}", report.task))?;
                    return Ok(());
                }
                StepOutcome::Committed(_) | StepOutcome::Lost => {}
            }
        }
        self.note(format!("more than {STEPS_MAX} steps are not tried"))
    }

    /// Shows the status of a task, and what it has written.
    fn show_result(&mut self, store: &dyn TaskStore, task: TaskId) -> Result<(), CliError> {
        let executor = Builder::new_current_thread()
            .build()
            .map_err(|error| CliError::Refused { message: format!("cannot read the tasks: {error}"), hint: None })?;
        let window = executor.block_on(store.window(task, &WindowLimits::STEP));
        let Ok(Some(window)) = window else { return Ok(()) };
        self.note(format!("task {task} is {}", window.task.status))?;
        for port in &window.outports {
            let values = JsonText::list(port.items.iter().map(|item| &item.data));
            self.note(format!("out port {}: {values}", port.name))?;
        }
        Ok(())
    }
}
