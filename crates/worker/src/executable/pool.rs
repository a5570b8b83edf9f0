//! The processes of an executable that stays: each has a thread that starts it, passes its messages on, and starts it again
//! when it has ended, with a pause that grows. A step takes a place in one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cronhold_core::task::StepId;
use cronhold_store::lock_mutex;
use cronhold_store::tasks::WindowLimits;

use super::message::{self, ReadyMessage, WorkerMessage, parse_message};
use super::open_steps::{OpenSteps, StepDeadline, StepInput};
use super::process::{LineEvent, LineProcess, exit_text, with_stderr};
use super::{ExecutableEvent, ExecutableMode, ExecutableOptions};
use crate::error::WorkerError;
use crate::worker::{StepResult, StepStop};

/// How long an executable may take to reply to `hello`.
const READY_WAIT: Duration = Duration::from_secs(10);
/// How long an executable may take to end after its input was closed.
const END_WAIT: Duration = Duration::from_secs(5);
/// How often a step that waits for a process checks whether it is cancelled.
const PLACE_WAIT: Duration = Duration::from_millis(200);
/// The longest pause before an executable is started again.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(60);
/// Cancelled steps that an executable has not ended.
const CANCELLED_STEPS_MAX: usize = 1_000;

/// The processes of an executable.
#[derive(Debug)]
pub(super) struct ExecutablePool {
    pub(super) options: Arc<ExecutableOptions>,
    pub(super) steps: OpenSteps,
    state: Mutex<PoolState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PoolState {
    processes: BTreeMap<u64, PooledProcess>,
    next: u64,
    is_quiet: bool,
    is_stopping: bool,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct PooledProcess {
    process: Arc<ExecutableProcess>,
    /// Steps that it makes.
    busy: u32,
}

/// A process that takes steps.
#[derive(Debug)]
pub(super) struct ExecutableProcess {
    pub(super) number: u64,
    pub(super) line: LineProcess,
    pub(super) ready: ReadyMessage,
    /// Steps that were cancelled, and that it has not ended.
    cancelled: Mutex<BTreeSet<StepId>>,
    /// Whether it has ended a step, so that the next pause is short again.
    has_succeeded: Mutex<bool>,
}

/// How a process has ended.
#[derive(Debug)]
struct ProcessEnd {
    why: String,
    code: Option<i32>,
    /// Whether it has ended a step before.
    has_succeeded: bool,
}

/// A place of a step in a process. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct ProcessPlace<'p> {
    pool: &'p ExecutablePool,
    pub(super) process: Arc<ExecutableProcess>,
    step: StepId,
}

impl ExecutablePool {
    pub(super) fn new(options: Arc<ExecutableOptions>) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { options, steps: OpenSteps::default(), state, changed })
    }

    /// Starts the first process, and returns its reply to `hello`. Fails if it does not reply.
    pub(super) fn start_first(self: &Arc<Self>) -> Result<ReadyMessage, WorkerError> {
        let (sender, first) = sync_channel(1);
        self.add_process(Some(sender))?;
        let reply = first.recv().unwrap_or_else(|_| Err("its thread has ended".to_owned()));
        reply.map_err(WorkerError::Executable)
    }

    /// Starts another process.
    pub(super) fn add_process(
        self: &Arc<Self>,
        first: Option<SyncSender<Result<ReadyMessage, String>>>,
    ) -> Result<(), WorkerError> {
        let pool = Arc::clone(self);
        let thread = thread::Builder::new()
            .name("executable".to_owned())
            .spawn(move || pool.supervise(first))
            .map_err(|error| WorkerError::System(error.to_string()))?;
        self.lock().threads.push(thread);
        Ok(())
    }

    /// No more steps come. Executables may end when they have ended theirs.
    pub(super) fn quiet(&self) {
        let mut state = self.lock();
        state.is_quiet = true;
        if self.options.mode == ExecutableMode::Protocol {
            for pooled in state.processes.values() {
                // It may have ended.
                let _ = pooled.process.line.send(message::quiet());
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Cancels a step that no process makes, which executables have to ignore.
    pub(super) fn cancel_unknown_step(&self) {
        let unknown = StepId::from_random([0; 16]);
        for pooled in self.lock().processes.values() {
            self.send(&pooled.process.line, message::cancel(unknown, "unknown"));
        }
    }

    /// Ends all processes, and waits until they have ended.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        (state.is_quiet, state.is_stopping) = (true, true);
        let processes: Vec<Arc<ExecutableProcess>> =
            state.processes.values().map(|pooled| Arc::clone(&pooled.process)).collect();
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        self.changed.notify_all();
        processes.iter().for_each(|process| process.line.close_input());
        let deadline = StepDeadline::after(END_WAIT);
        let state = self.lock();
        let waits = |state: &mut PoolState| !state.processes.is_empty();
        let waited = self.changed.wait_timeout_while(state, deadline.left(), waits);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        processes.iter().for_each(|process| process.line.kill());
        for thread in threads {
            // A panic of the thread was printed to standard error already.
            let _ = thread.join();
        }
    }

    /// Takes a place for a step. Waits while no process has one; gives the step back if none will.
    pub(super) fn take_place(&self, step: StepId, inputs: &Receiver<StepInput>) -> StepResult<ProcessPlace<'_>> {
        let mut state = self.lock();
        loop {
            let free = state.processes.values_mut().filter(|pooled| pooled.busy < pooled.process.ready.concurrency);
            if let Some(pooled) = free.min_by_key(|pooled| pooled.busy) {
                pooled.busy += 1;
                let process = Arc::clone(&pooled.process);
                drop(state);
                self.steps.assign(step, process.number);
                return Ok(ProcessPlace { pool: self, process, step });
            }
            if state.is_quiet {
                return Err(StepStop::GivenBack);
            }
            if inputs.try_recv().is_ok() {
                // Nothing else is sent to a step without a process.
                return Err(StepStop::GivenBack);
            }
            let waited = self.changed.wait_timeout(state, PLACE_WAIT);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        lock_mutex(&self.state)
    }

    fn observe(&self, event: &ExecutableEvent) {
        (self.options.observer)(event);
    }

    /// Keeps one process running until the pool stops.
    fn supervise(self: Arc<Self>, mut first: Option<SyncSender<Result<ReadyMessage, String>>>) {
        let mut pause = self.options.restart_pause;
        loop {
            let ProcessEnd { why, code, has_succeeded } = self.run_process(first.take().as_ref());
            self.changed.notify_all();
            if has_succeeded {
                pause = self.options.restart_pause;
            }
            let state = self.lock();
            let is_over = state.is_stopping || state.is_quiet;
            drop(state);
            let restart = (!is_over).then_some(pause);
            self.observe(&ExecutableEvent::Ended { why, code, restart });
            if is_over {
                return;
            }
            let state = self.lock();
            let waited = self.changed.wait_timeout_while(state, pause, |state| !state.is_quiet);
            let is_over = waited.unwrap_or_else(PoisonError::into_inner).0.is_quiet;
            if is_over {
                return;
            }
            pause = (2 * pause).min(RESTART_PAUSE_MAX);
        }
    }

    /// Runs a process to its end.
    fn run_process(&self, first: Option<&SyncSender<Result<ReadyMessage, String>>>) -> ProcessEnd {
        let reply = |result: Result<ReadyMessage, String>| {
            if let Some(first) = first {
                // Who starts the pool waits for one reply.
                let _ = first.try_send(result);
            }
        };
        let ExecutableOptions { launcher, command, observer, .. } = &*self.options;
        let (line, events) = match LineProcess::spawn(launcher, command, observer) {
            Ok(started) => started,
            Err(error) => {
                let why = format!("cannot start `{}`: {error}", self.options.program());
                reply(Err(why.clone()));
                return ProcessEnd::without_steps(why);
            }
        };
        self.observe(&ExecutableEvent::Started { pid: line.pid() });
        let ready = match self.shake_hands(&line, &events) {
            Ok(ready) => ready,
            Err(why) => {
                line.kill();
                reply(Err(why.clone()));
                return ProcessEnd::without_steps(why);
            }
        };
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let process = Arc::new(ExecutableProcess {
            number,
            line,
            ready: ready.clone(),
            cancelled: Mutex::default(),
            has_succeeded: Mutex::default(),
        });
        if !state.is_stopping {
            state.processes.insert(number, PooledProcess { process: Arc::clone(&process), busy: 0 });
        } else {
            process.line.close_input();
        }
        drop(state);
        self.changed.notify_all();
        reply(Ok(ready));
        let (why, code) = self.pass_messages(&process, &events);
        self.lock().processes.remove(&number);
        self.steps.end_process(number, &why);
        let has_succeeded = *lock_mutex(&process.has_succeeded);
        ProcessEnd { why, code, has_succeeded }
    }

    /// Sends `hello`, and waits for `ready`.
    fn shake_hands(&self, line: &LineProcess, events: &Receiver<LineEvent>) -> Result<ReadyMessage, String> {
        if self.options.mode != ExecutableMode::Protocol {
            return Ok(ReadyMessage { concurrency: 1, ..ReadyMessage::default() });
        }
        let ExecutableOptions { queue, process, concurrency, .. } = &*self.options;
        let limits = WindowLimits::STEP;
        self.send(line, message::hello(queue, process, *concurrency, (limits.items, limits.bytes)));
        let deadline = StepDeadline::after(READY_WAIT);
        loop {
            match events.recv_timeout(deadline.left()) {
                Ok(LineEvent::Line(text)) => {
                    self.observe(&ExecutableEvent::Received { line: text.clone() });
                    match parse_message(&text)? {
                        WorkerMessage::Ready(ready) => return Ok(ready),
                        WorkerMessage::Log { level, text } => self.observe(&ExecutableEvent::Log { level, text }),
                        _ => return Err(format!("it has to reply to `hello` with `ready`, not with {text}")),
                    }
                }
                Ok(LineEvent::Malformed(why)) => return Err(why),
                Ok(LineEvent::Ended(status)) => {
                    let message = format!("it ended with {} before it replied to `hello`", exit_text(status));
                    return Err(with_stderr(message, &line.last_stderr()));
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let message = format!("it did not reply to `hello` with `ready` within {} s", READY_WAIT.as_secs());
                    return Err(with_stderr(message, &line.last_stderr()));
                }
            }
        }
    }

    /// Sends a line, and reports it.
    pub(super) fn send(&self, line: &LineProcess, text: String) {
        self.observe(&ExecutableEvent::Sent { line: text.clone() });
        if let Err(super::process::LineSendError::Unread) = line.send(text) {
            self.observe(&ExecutableEvent::Problem { text: "it does not read its messages".to_owned() });
            line.kill();
        }
    }

    /// Passes messages to their steps until the process has ended. Returns how it ended, and its exit code.
    fn pass_messages(&self, process: &ExecutableProcess, events: &Receiver<LineEvent>) -> (String, Option<i32>) {
        let mut problem = None;
        for event in events {
            let result = match event {
                LineEvent::Line(_) if problem.is_some() => continue,
                LineEvent::Line(text) => {
                    self.observe(&ExecutableEvent::Received { line: text.clone() });
                    self.pass_line(process, &text)
                }
                LineEvent::Malformed(why) => Err(why),
                LineEvent::Ended(status) => {
                    let how = problem.unwrap_or_else(|| format!("it ended with {}", exit_text(status)));
                    return (with_stderr(how, &process.line.last_stderr()), status.code());
                }
            };
            if let Err(why) = result
                && problem.is_none()
            {
                self.observe(&ExecutableEvent::Problem { text: why.clone() });
                problem = Some(format!("protocol: {why}"));
                process.line.kill();
            }
        }
        (problem.unwrap_or_else(|| "it has ended".to_owned()), None)
    }

    fn pass_line(&self, process: &ExecutableProcess, text: &str) -> Result<(), String> {
        if self.options.mode != ExecutableMode::Protocol {
            let step = self.steps.step_of(process.number);
            let is_passed =
                step.is_some_and(|step| self.steps.send(process.number, step, StepInput::Line(text.to_owned())));
            return match is_passed || process.has_cancelled() {
                true => Ok(()),
                false => Err(format!("it wrote a line for which it got none: {text}")),
            };
        }
        let message = parse_message(text)?;
        let (step, is_end) = match &message {
            WorkerMessage::Log { level, text } => {
                self.observe(&ExecutableEvent::Log { level: level.clone(), text: text.clone() });
                return Ok(());
            }
            WorkerMessage::Ready(_) => return Err("it sent `ready` again".to_owned()),
            WorkerMessage::Changes { step, .. } | WorkerMessage::Need { step, .. } => (*step, false),
            WorkerMessage::End { step, .. } => (*step, true),
        };
        if process.is_cancelled(step, is_end) {
            return Ok(());
        }
        match self.steps.send(process.number, step, StepInput::Message(message)) {
            true => Ok(()),
            // The step may have been cancelled since.
            false if process.is_cancelled(step, is_end) => Ok(()),
            false => Err(format!("step {step} is not open")),
        }
    }
}

impl ProcessEnd {
    const fn without_steps(why: String) -> Self {
        Self { why, code: None, has_succeeded: false }
    }
}

impl ExecutableProcess {
    /// Whether a step was cancelled; forgets it with its end.
    fn is_cancelled(&self, step: StepId, is_end: bool) -> bool {
        let mut cancelled = lock_mutex(&self.cancelled);
        match is_end {
            true => cancelled.remove(&step),
            false => cancelled.contains(&step),
        }
    }

    fn has_cancelled(&self) -> bool {
        !lock_mutex(&self.cancelled).is_empty()
    }

    /// Ignores what comes for a step from now on, until its end.
    pub(super) fn forget_step(&self, step: StepId) {
        let mut cancelled = lock_mutex(&self.cancelled);
        cancelled.insert(step);
        if cancelled.len() > CANCELLED_STEPS_MAX {
            drop(cancelled);
            self.line.kill();
        }
    }

    pub(super) fn set_succeeded(&self) {
        *lock_mutex(&self.has_succeeded) = true;
    }
}

impl Drop for ProcessPlace<'_> {
    fn drop(&mut self) {
        self.pool.steps.close(self.step);
        if let Some(pooled) = self.pool.lock().processes.get_mut(&self.process.number) {
            pooled.busy -= 1;
        }
        self.pool.changed.notify_all();
    }
}
