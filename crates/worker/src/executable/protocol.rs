//! Steps of tasks by protocol 1: sends a step to a process, carries out its acts, and replies to what it needs.

use cronhold_core::task::{ChildName, JsonText, PortAddress, PortDirection, TaskKey, TaskRecord};
use cronhold_store::tasks::{PortWindow, TaskStore, WindowLimits};
use serde_json::json;

use super::apply::{ChangeApplier, protocol_error};
use super::change::KeyForm;
use super::class::ClassSettings;
use super::exchange::{ExchangePeer, StepExchange};
use super::message::{ItemsForm, RowChanges, StepNeed};
use super::pool::ExecutablePool;
use super::step_line::{StepLineOptions, all_port_lines, step_line};
use crate::step::{AfterRows, InputRows, TaskStep, load};
use crate::worker::{StepResult, StepStop};

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
    let exchange = StepExchange { pool, process: &place.process, id };
    let wants_context = place.process.ready.wants_context;
    let mut peer = TaskStepPeer { applier: ChangeApplier::new(step), rows: rows.as_ref(), wants_context };
    let result = exchange.run(&mut peer, class.deadline(), &inputs);
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

/// What is special about a step of a task.
struct TaskStepPeer<'a, 's> {
    applier: ChangeApplier<'a, 's>,
    rows: Option<&'a InputRows>,
    wants_context: bool,
}

impl ExchangePeer for TaskStepPeer<'_, '_> {
    fn apply(&mut self, changes: &RowChanges) -> StepResult {
        let last = self.rows.filter(|rows| rows.ends_with_defaults).map(|rows| rows.rows.len() - 1);
        let count = self.rows.map_or(0, |rows| rows.rows.len());
        if let Some(row) = changes.row.filter(|row| *row >= count) {
            return Err(protocol_error(format!("the step has no row {row}; it has {count}")));
        }
        self.applier.step.set_writes_defaults(last.is_some() && changes.row == last);
        let result = self.applier.apply_all(&changes.acts);
        self.applier.step.set_writes_defaults(false);
        result
    }

    fn answer(&mut self, need: &StepNeed) -> StepResult<Result<JsonText, String>> {
        let step = &mut *self.applier.step;
        match need {
            StepNeed::Items(items) => items_value(step, items),
            StepNeed::Child(name) => child_value(step, name, self.wants_context),
            StepNeed::Task(key) => find_task(step.store(), key),
            StepNeed::IdOf(name) => {
                if let Ok(child) = ChildName::parse(name)
                    && let Some(id) = step.load(step.store().child(step.task().id, &child))?
                {
                    return Ok(Ok(JsonText::of_number(id.number())));
                }
                find_id(step.store(), name)
            }
        }
    }
}

/// Items of a port, as they were when the step began.
fn items_value(step: &mut TaskStep<'_>, wanted: &ItemsForm) -> StepResult<Result<JsonText, String>> {
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

fn child_value(step: &TaskStep<'_>, name: &ChildName, wants_context: bool) -> StepResult<Result<JsonText, String>> {
    let Some(id) = step.load(step.store().child(step.task().id, name))? else { return Ok(Ok(JsonText::null())) };
    let Some(window) = step.load(step.store().window(id, &WindowLimits::STEP))? else {
        return Ok(Ok(JsonText::null()));
    };
    let ports: &[PortWindow] = &window.outports;
    let lines = all_port_lines(ports, wants_context);
    let (class, status) = (&window.task.class, window.task.status.as_str());
    let value = json!({"task": id.number(), "class": class.as_str(), "status": status, "out": lines});
    Ok(JsonText::of(&value).map_err(|error| error.message))
}

/// A task by its id or an alias, `null` if it does not exist, or an error text.
pub(super) fn find_task(store: &dyn TaskStore, key: &KeyForm) -> StepResult<Result<JsonText, String>> {
    match key.key() {
        Ok(key) => Ok(Ok(load(store.find(&key))?.map_or_else(JsonText::null, |task| task_value(&task)))),
        Err(error) => Ok(Err(error.message)),
    }
}

/// The id of a task by its alias, `null` if it does not exist, or an error text.
pub(super) fn find_id(store: &dyn TaskStore, name: &str) -> StepResult<Result<JsonText, String>> {
    match TaskKey::parse(name) {
        Ok(key) => {
            let found = load(store.find(&key))?;
            Ok(Ok(found.map_or_else(JsonText::null, |task| JsonText::of_number(task.id.number()))))
        }
        Err(error) => Ok(Err(error.message)),
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
