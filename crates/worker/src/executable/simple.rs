//! The two modes without the protocol: a process for each step, and a process that turns lines into lines.

use std::sync::mpsc::{Receiver, RecvTimeoutError};

use cronhold_core::task::{JsonText, PortDirection, PortName, PortTarget, StepId, TaskTarget};

use super::apply::{ChangeApplier, protocol_error};
use super::class::ClassSettings;
use super::open_steps::{CancelReason, StepDeadline, StepInput};
use super::pool::ExecutablePool;
use super::process::{LineEvent, LineProcess, exit_text, with_stderr};
use super::step_line::{StepLineOptions, step_line};
use super::{ExecutableEvent, ExecutableOptions};
use crate::step::TaskStep;
use crate::worker::{StepResult, StepStop};

/// The exit code of a process that suspends its step.
const SUSPEND_CODE: i32 = 75;
/// Lines of a process with a step. A unit has at most as many acts.
const ACT_LINES_MAX: usize = 100_000;

/// Makes a step by a process of its own: the message `step` is its input, each line of its output is an act, and its exit
/// code is the end.
pub(super) fn make_step_by_process(
    pool: &ExecutablePool,
    class: &ClassSettings,
    call: &'static str,
    step: &mut TaskStep<'_>,
) -> StepResult {
    let options =
        StepLineOptions { deadline_ms: class.deadline_ms, needs: class.needs(&<_>::default()), ..<_>::default() };
    let Some(line) = step_line(step, call, &options) else { return step.fail("the task is too large for a message") };
    let (acts, is_done) = run_process(pool, class, step.place().id, line)?;
    let mut applier = ChangeApplier::new(step);
    applier.apply_all(&acts)?;
    if !is_done {
        return step.suspend();
    }
    run_again_for_more(step)
}

/// Starts a process with a line as its input, and returns its acts and whether it is done; otherwise it suspends.
pub(super) fn run_process(
    pool: &ExecutablePool,
    class: &ClassSettings,
    id: StepId,
    line: String,
) -> StepResult<(Vec<JsonText>, bool)> {
    let ExecutableOptions { launcher, command, observer, .. } = &*pool.options;
    let (process, events) = LineProcess::spawn(launcher, command, observer)
        .map_err(|error| StepStop::Failed(format!("cannot start `{}`: {error}", pool.options.program())))?;
    observer(&ExecutableEvent::Started { pid: process.pid() });
    pool.send(&process, line);
    process.close_input();
    let inputs = pool.steps.open(id);
    let result = collect_acts(&process, &events, &inputs, class, pool);
    pool.steps.close(id);
    result
}

/// Requests another step if a port had more items than the process has seen, and the process has taken those.
fn run_again_for_more(step: &mut TaskStep<'_>) -> StepResult {
    let ports = step.window().inports.iter().filter(|port| port.items.len() as u64 != port.size);
    let ports: Vec<(PortName, u64)> = ports.map(|port| (port.name.clone(), port.size)).collect();
    for (port, size) in ports {
        let address = step.inport(port.as_str())?;
        if step.buffer(&address)?.left() < size {
            step.run_again();
            return Ok(());
        }
    }
    Ok(())
}

/// The acts of a process, and whether its step is done; otherwise it is suspended.
fn collect_acts(
    process: &LineProcess,
    events: &Receiver<LineEvent>,
    inputs: &Receiver<StepInput>,
    class: &ClassSettings,
    pool: &ExecutablePool,
) -> StepResult<(Vec<JsonText>, bool)> {
    /// How often a cancellation is looked for.
    const CANCEL_POLL: std::time::Duration = std::time::Duration::from_millis(200);
    let deadline = StepDeadline::after(class.deadline());
    let mut acts = Vec::new();
    loop {
        match inputs.try_recv() {
            Ok(StepInput::Cancelled(CancelReason::Stopping)) => return Err(StepStop::GivenBack),
            Ok(StepInput::Cancelled(CancelReason::LeaseLost)) => {
                return Err(StepStop::Repeated("its lease is lost".to_owned()));
            }
            _ => {}
        }
        match events.recv_timeout(deadline.left().min(CANCEL_POLL)) {
            Ok(LineEvent::Line(text)) if text.trim().is_empty() => {}
            Ok(LineEvent::Line(text)) => {
                (pool.options.observer)(&ExecutableEvent::Received { line: text.clone() });
                let act = JsonText::parse(&text)
                    .map_err(|error| protocol_error(format!("line {}: {}", acts.len() + 1, error.message)))?;
                acts.push(act);
                if acts.len() > ACT_LINES_MAX {
                    return Err(protocol_error(format!("a step has at most {ACT_LINES_MAX} lines")));
                }
            }
            Ok(LineEvent::Malformed(why)) => return Err(protocol_error(why)),
            Ok(LineEvent::Ended(status)) => match status.code() {
                Some(0) => return Ok((acts, true)),
                Some(SUSPEND_CODE) => return Ok((acts, false)),
                _ => return Err(StepStop::Failed(with_stderr(exit_text(status), &process.last_stderr()))),
            },
            Err(RecvTimeoutError::Timeout) if !deadline.left().is_zero() => {}
            Err(_) => {
                let message = format!("timed out after {} ms", class.deadline_ms);
                return Err(StepStop::Failed(with_stderr(message, &process.last_stderr())));
            }
        }
    }
}

/// Makes a step by a filter: each item of the in port is a line of its input, and each line of its output an item of the
/// out port, or `null` for nothing.
pub(super) fn make_step_by_filter(
    pool: &ExecutablePool,
    class: &ClassSettings,
    (inport, outport): (&PortName, &PortName),
    step: &mut TaskStep<'_>,
) -> StepResult {
    let from = step.inport(inport.as_str())?;
    if step.buffer(&from)?.left() == 0 {
        return Ok(());
    }
    let id = step.place().id;
    let inputs = pool.steps.open(id);
    let place = pool.take_place(id, &inputs);
    if place.is_err() {
        pool.steps.close(id);
    }
    let place = place?;
    let process = &place.process;
    let to = PortTarget { task: TaskTarget::Id(step.task().id), direction: PortDirection::Out, port: outport.clone() };
    let deadline = StepDeadline::after(class.deadline());
    while let Some(value) = step.read_item(&from)? {
        if let Ok(StepInput::Line(line)) = inputs.try_recv() {
            process.line.kill();
            return Err(protocol_error(format!("it wrote more than one line for an item: {line}")));
        }
        pool.send(&process.line, value.to_string());
        let written = read_reply(pool, &place.process.line, deadline, &inputs, class)?;
        if written.as_str() != "null" {
            step.write_value(to.clone(), written);
        }
        if !step.has_room() && step.buffer(&from)?.left() > 0 {
            step.run_again();
            return step.suspend();
        }
    }
    process.set_succeeded();
    Ok(())
}

/// The line for an item. A process that does not write one is killed, because its lines cannot be told apart any more.
fn read_reply(
    pool: &ExecutablePool,
    process: &LineProcess,
    deadline: StepDeadline,
    inputs: &Receiver<StepInput>,
    class: &ClassSettings,
) -> StepResult<JsonText> {
    loop {
        let stop = match deadline.receive(inputs) {
            Some(StepInput::Line(line)) => match JsonText::parse(&line) {
                Ok(value) => return Ok(value),
                Err(error) => protocol_error(error.message),
            },
            Some(StepInput::Message(_)) => continue,
            Some(StepInput::Ended(why)) => {
                return Err(StepStop::Repeated(format!("the executable was lost: {why}")));
            }
            Some(StepInput::Cancelled(CancelReason::Stopping)) => StepStop::GivenBack,
            Some(StepInput::Cancelled(CancelReason::LeaseLost)) => StepStop::Repeated("its lease is lost".to_owned()),
            None => {
                let message = format!(
                    "timed out after {} ms without a line for an item (a filter writes one line for each, or null)",
                    class.deadline_ms
                );
                StepStop::Failed(with_stderr(message, &process.last_stderr()))
            }
        };
        process.kill();
        (pool.options.observer)(&ExecutableEvent::Problem { text: "a step has ended without its line".to_owned() });
        return Err(stop);
    }
}
