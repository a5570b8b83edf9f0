//! Steps by protocol 1: sends a step to a process, and carries out what it replies.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use cronhold_core::task::{ChildName, JsonText, PortAddress, PortDirection, StepId, TaskKey, TaskRecord};
use cronhold_store::tasks::{PortWindow, WindowLimits};
use serde_json::json;

use super::apply::{ChangeApplier, protocol_error};
use super::class::ClassSettings;
use super::message::{self, ItemsForm, MessageEnding, RowChanges, StepNeed, WorkerMessage};
use super::open_steps::{CancelReason, StepDeadline, StepInput};
use super::pool::{ExecutablePool, ExecutableProcess, ProcessPlace};
use super::process::with_stderr;
use super::step_line::{StepLineOptions, all_port_lines, step_line};
use crate::step::{AfterRows, InputRows, TaskStep};
use crate::worker::{StepResult, StepStop};

/// How long an executable may take to end a step that was cancelled because of its deadline.
const CANCEL_WAIT: Duration = Duration::from_secs(5);
/// Rows of inputs in one step.
const ROWS_MAX: usize = 1_000;
/// Bytes of the rows of inputs in one step.
const ROW_BYTES_MAX: usize = 1 << 20;

/// Makes one step.
pub(super) fn make_step(
    pool: &ExecutablePool,
    class: &ClassSettings,
    call: &'static str,
    step: &mut TaskStep<'_>,
) -> StepResult {
    let rows = match (&class.for_inputs, call) {
        (Some(ports), "perform") => Some(step.take_rows(ports, ROWS_MAX, ROW_BYTES_MAX)?),
        _ => None,
    };
    if let Some(InputRows { rows: read, next, .. }) = &rows
        && read.is_empty()
    {
        return after_rows(step, *next);
    }
    let id = step.place().id;
    let inputs = pool.steps.open(id);
    let place = pool.take_place(id, &inputs);
    if place.is_err() {
        pool.steps.close(id);
    }
    let place = place?;
    let options = StepLineOptions {
        deadline_ms: class.deadline_ms,
        has_contexts: place.process.ready.wants_context,
        needs: class.needs(&place.process.ready),
        rows: rows.as_ref().map(|rows| rows.rows.clone()),
    };
    let Some(line) = step_line(step, call, &options) else {
        return step.fail("the task is too large for a message (use `needs` to leave out parts of it)");
    };
    pool.send(&place.process.line, line);
    let exchange = StepExchange { pool, place: &place, id, rows: rows.as_ref() };
    let result = exchange.run(step, class.deadline(), &inputs);
    if matches!(&result, Ok(()) | Err(StepStop::Suspended)) {
        place.process.set_succeeded();
    }
    result?;
    match rows {
        Some(rows) => after_rows(step, rows.next),
        None => Ok(()),
    }
}

fn after_rows(step: &mut TaskStep<'_>, next: AfterRows) -> StepResult {
    match next {
        AfterRows::End => Ok(()),
        AfterRows::Suspend => step.suspend(),
        AfterRows::RunAgain => {
            step.run_again();
            step.suspend()
        }
    }
}

/// The conversation about one step.
struct StepExchange<'p> {
    pool: &'p ExecutablePool,
    place: &'p ProcessPlace<'p>,
    id: StepId,
    rows: Option<&'p InputRows>,
}

impl StepExchange<'_> {
    fn process(&self) -> &Arc<ExecutableProcess> {
        &self.place.process
    }

    fn run(&self, step: &mut TaskStep<'_>, time: Duration, inputs: &Receiver<StepInput>) -> StepResult {
        let deadline = StepDeadline::after(time);
        let mut applier = ChangeApplier::new(step);
        loop {
            let Some(input) = deadline.receive(inputs) else { return self.time_out(time, inputs) };
            match input {
                StepInput::Message(WorkerMessage::Changes { changes, .. }) => {
                    self.apply(&mut applier, &changes).inspect_err(|_| self.cancel("it failed"))?;
                }
                StepInput::Message(WorkerMessage::Need { id, need, .. }) => {
                    let found = self.answer(applier.step, &need).inspect_err(|_| self.cancel("it failed"))?;
                    self.pool.send(&self.process().line, message::have(self.id, &id, found));
                }
                StepInput::Message(WorkerMessage::End { changes, ending, .. }) => {
                    if let MessageEnding::Fail(error) = ending {
                        return Err(StepStop::Failed(error));
                    }
                    self.apply(&mut applier, &changes)?;
                    return match ending {
                        MessageEnding::Suspend => Err(StepStop::Suspended),
                        MessageEnding::Done | MessageEnding::Fail(_) => Ok(()),
                    };
                }
                StepInput::Message(WorkerMessage::Ready(_) | WorkerMessage::Log { .. }) | StepInput::Line(_) => {}
                StepInput::Cancelled(why) => {
                    self.cancel(why.as_str());
                    return Err(match why {
                        CancelReason::LeaseLost => StepStop::Repeated("its lease is lost".to_owned()),
                        CancelReason::Stopping => StepStop::GivenBack,
                    });
                }
                StepInput::Ended(why) => return Err(StepStop::Repeated(format!("the executable was lost: {why}"))),
            }
        }
    }

    fn apply(&self, applier: &mut ChangeApplier<'_, '_>, changes: &RowChanges) -> StepResult {
        let last = self.rows.filter(|rows| rows.ends_with_defaults).map(|rows| rows.rows.len() - 1);
        let count = self.rows.map_or(0, |rows| rows.rows.len());
        if let Some(row) = changes.row.filter(|row| *row >= count) {
            return Err(protocol_error(format!("the step has no row {row}; it has {count}")));
        }
        applier.step.set_writes_defaults(last.is_some() && changes.row == last);
        let result = applier.apply_all(&changes.acts);
        applier.step.set_writes_defaults(false);
        result
    }

    /// Tells the process that the step is over, and ignores what it still sends.
    fn cancel(&self, why: &str) {
        self.process().forget_step(self.id);
        self.pool.send(&self.process().line, message::cancel(self.id, why));
    }

    /// Cancels the step, and kills the process if it does not end it.
    fn time_out(&self, time: Duration, inputs: &Receiver<StepInput>) -> StepResult {
        self.pool.send(&self.process().line, message::cancel(self.id, "deadline"));
        let deadline = StepDeadline::after(CANCEL_WAIT);
        let has_ended = loop {
            match deadline.receive(inputs) {
                Some(StepInput::Message(WorkerMessage::End { .. }) | StepInput::Ended(_)) => break true,
                Some(_) => {}
                None => break false,
            }
        };
        if !has_ended {
            self.process().forget_step(self.id);
            self.process().line.kill();
        }
        let message = format!("timed out after {} ms", time.as_millis());
        Err(StepStop::Failed(with_stderr(message, &self.process().line.last_stderr())))
    }

    /// What was asked for; an error text if it does not exist.
    fn answer(&self, step: &mut TaskStep<'_>, need: &StepNeed) -> StepResult<Result<JsonText, String>> {
        match need {
            StepNeed::Items(items) => self.items(step, items),
            StepNeed::Child(name) => self.child(step, name),
            StepNeed::Task(key) => match key.key() {
                Ok(key) => {
                    let found = step.load(step.store().find(&key))?;
                    Ok(Ok(found.map_or_else(JsonText::null, |task| task_value(&task))))
                }
                Err(error) => Ok(Err(error.message)),
            },
            StepNeed::IdOf(name) => {
                if let Ok(child) = ChildName::parse(name)
                    && let Some(id) = step.load(step.store().child(step.task().id, &child))?
                {
                    return Ok(Ok(JsonText::of_number(id.number())));
                }
                match TaskKey::parse(name) {
                    Ok(key) => {
                        let found = step.load(step.store().find(&key))?;
                        Ok(Ok(found.map_or_else(JsonText::null, |task| JsonText::of_number(task.id.number()))))
                    }
                    Err(error) => Ok(Err(error.message)),
                }
            }
        }
    }

    /// Items of a port, as they were when the step began.
    fn items(&self, step: &mut TaskStep<'_>, wanted: &ItemsForm) -> StepResult<Result<JsonText, String>> {
        let (task, usual) = match &wanted.port.child {
            None => (step.task().id, PortDirection::In),
            Some(name) => match step.child(name.as_str())?.and_then(|child| child.id()) {
                Some(id) => (id, PortDirection::Out),
                None => return Ok(Err(format!("the task has no child `{name}`"))),
            },
        };
        let direction = wanted.port.dir.map_or(usual, super::change::DirectionForm::direction);
        let port = PortAddress { task, direction, port: wanted.port.port.clone() };
        let (first, size) = match step.buffer(&port) {
            Ok(buffer) => buffer.range(),
            Err(StepStop::Failed(message)) => return Ok(Err(message)),
            Err(stop) => return Err(stop),
        };
        let limits = WindowLimits { items: wanted.count.unwrap_or(WindowLimits::ITEMS.items), ..WindowLimits::ITEMS };
        let left = usize::try_from(size.saturating_sub(wanted.from)).unwrap_or(usize::MAX);
        let page = match left {
            0 => None,
            _ => step.load(step.store().items(&port, first + wanted.from, &limits))?,
        };
        let mut items = page.filter(|page| page.position == first + wanted.from).map_or(Vec::new(), |page| page.items);
        items.truncate(left.min(limits.items));
        let more = wanted.from + (items.len() as u64) < size;
        let values = JsonText::list(items.iter().map(|item| &item.data));
        let text = format!(r#"{{"size":{size},"from":{},"more":{more},"items":{values}}}"#, wanted.from);
        Ok(JsonText::parse(&text).map_err(|error| error.message))
    }

    fn child(&self, step: &TaskStep<'_>, name: &ChildName) -> StepResult<Result<JsonText, String>> {
        let Some(id) = step.load(step.store().child(step.task().id, name))? else { return Ok(Ok(JsonText::null())) };
        let Some(window) = step.load(step.store().window(id, &WindowLimits::STEP))? else {
            return Ok(Ok(JsonText::null()));
        };
        let ports: &[PortWindow] = &window.outports;
        let lines = all_port_lines(ports, self.process().ready.wants_context);
        let (class, status) = (&window.task.class, window.task.status.as_str());
        let value = json!({"task": id.number(), "class": class.as_str(), "status": status, "out": lines});
        Ok(JsonText::of(&value).map_err(|error| error.message))
    }
}

fn task_value(task: &TaskRecord) -> JsonText {
    let value = json!({
        "task": task.id.number(), "queue": task.queue.as_str(), "class": task.class.as_str(),
        "status": task.status.as_str(), "created_at": task.created_at, "created_by": task.created_by,
        "parent": task.parent.as_ref().map(|(parent, _)| parent.number()),
    });
    JsonText::of(&value).expect("numbers and texts are JSON")
}
