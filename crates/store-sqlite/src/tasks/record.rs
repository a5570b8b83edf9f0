//! Tasks, ports and processes as rows.

use cronhold_core::task::{
    Channel, ChildName, ClassName, JsonText, PortAddress, PortItem, PortName, QueueName, StepId, StepLease, TaskId,
    TaskRecord, TaskStatus,
};
use cronhold_store::tasks::{PortRecord, ProcessId, ProcessSignal, WorkerProcess};
use rusqlite::Row;
use rusqlite::types::Value;

use crate::rows::{CellReader, RowCells, UnreadableRow};

/// The columns of a task. The first ones never change.
pub(super) const TASK_COLUMNS: &str = "id, queue, class, args, created_at, created_by, status, ran_at, parent, \
     child_name, entry, run_at, step, lease_until, last_step, lost_steps, refused_steps, rate_minute, rate_count";

/// The columns of a process.
pub(super) const PROCESS_COLUMNS: &str = "id, queue, classes, concurrency, started_at, beat_at, busy, quiet, signals";

/// All cells of a task.
pub(super) fn task_cells(task: &TaskRecord) -> Vec<Value> {
    let mut cells = RowCells::new(19);
    cells.count(task.id.number());
    cells.text(task.queue.as_str());
    cells.text(task.class.as_str());
    cells.option(task.args.as_ref(), |cells, args| cells.text(args.as_str()));
    cells.instant(task.created_at);
    cells.text(&task.created_by);
    let mut values = cells.into_values();
    values.extend(changing_cells(task));
    values
}

/// The cells of a task that can change.
pub(super) fn changing_cells(task: &TaskRecord) -> Vec<Value> {
    let mut cells = RowCells::new(14);
    cells.text(task.status.as_str());
    cells.option(task.ran_at, RowCells::instant);
    cells.option(task.parent.as_ref(), |cells, (parent, _)| cells.count(parent.number()));
    cells.option(task.parent.as_ref(), |cells, (_, name)| cells.text(name.as_str()));
    cells.option(task.entry, RowCells::count);
    cells.option(task.run_at, RowCells::instant);
    cells.option(task.lease, |cells, lease| cells.display(&lease.step));
    cells.option(task.lease, |cells, lease| cells.instant(lease.until));
    cells.option(task.last_step, |cells, step| cells.display(&step));
    cells.integer(task.lost_steps);
    cells.integer(task.refused_steps);
    cells.integer(task.rate_minute);
    cells.integer(task.rate_count);
    cells.into_values()
}

/// Reads a row with [`TASK_COLUMNS`].
pub(super) fn read_task(row: &Row<'_>) -> Result<TaskRecord, UnreadableRow> {
    let cells = CellReader::new(row);
    let id = read_id(&cells)?;
    let queue = cells.parsed(QueueName::parse)?;
    let class = cells.parsed(ClassName::parse)?;
    let args = cells.option_parsed(JsonText::parse)?;
    let created_at = cells.instant()?;
    let created_by = cells.text()?.to_owned();
    let status = cells.parsed(TaskStatus::parse)?;
    let ran_at = cells.option_instant()?;
    let parent = cells.option_integer::<u64>()?.and_then(TaskId::new);
    let child_name = cells.option_parsed(ChildName::parse)?;
    let entry = cells.option_integer()?;
    let run_at = cells.option_instant()?;
    let step = cells.option_parsed(StepId::parse)?;
    let until = cells.option_instant()?;
    Ok(TaskRecord {
        id,
        queue,
        class,
        args,
        status,
        created_at,
        created_by,
        ran_at,
        parent: parent.zip(child_name),
        entry,
        run_at,
        lease: step.zip(until).map(|(step, until)| StepLease { step, until }),
        last_step: cells.option_parsed(StepId::parse)?,
        lost_steps: cells.integer()?,
        refused_steps: cells.integer()?,
        rate_minute: cells.integer()?,
        rate_count: cells.integer()?,
    })
}

/// Reads the id of a task.
pub(super) fn read_id(cells: &CellReader<'_>) -> Result<TaskId, UnreadableRow> {
    let number = cells.integer::<u64>()?;
    TaskId::new(number).ok_or_else(|| cells.wrong("is not the id of a task"))
}

/// The cells that identify a port.
pub(super) fn port_key(port: &PortAddress) -> (u64, &'static str, &str) {
    (port.task.number(), port.direction.as_str(), port.port.as_str())
}

/// Reads the columns `port, default_item, channels, first, next`.
pub(super) fn read_port(row: &Row<'_>) -> Result<(PortName, PortRecord), UnreadableRow> {
    let cells = CellReader::new(row);
    let name = cells.parsed(PortName::parse)?;
    let default = cells.option_parsed(PortItem::parse)?;
    let channels: Vec<Channel> = cells.json()?;
    let (first, next) = (cells.integer()?, cells.integer()?);
    match first <= next {
        true => Ok((name, PortRecord { default, channels, first, next })),
        false => Err(cells.wrong("is before the first item")),
    }
}

/// All cells of a process.
pub(super) fn process_cells(process: &WorkerProcess) -> Vec<Value> {
    let mut cells = RowCells::new(9);
    cells.text(process.id.as_str());
    cells.text(process.queue.as_str());
    cells.json(&process.classes);
    cells.integer(process.concurrency);
    cells.instant(process.started_at);
    cells.instant(process.beat_at);
    cells.integer(process.busy);
    cells.integer(process.is_quiet);
    cells.json(&process.signals.iter().map(|signal| signal.as_str()).collect::<Vec<_>>());
    cells.into_values()
}

/// Reads a row with [`PROCESS_COLUMNS`].
pub(super) fn read_process(row: &Row<'_>) -> Result<WorkerProcess, UnreadableRow> {
    let cells = CellReader::new(row);
    Ok(WorkerProcess {
        id: ProcessId::new(cells.text()?),
        queue: cells.parsed(QueueName::parse)?,
        classes: cells.json()?,
        concurrency: cells.integer()?,
        started_at: cells.instant()?,
        beat_at: cells.instant()?,
        busy: cells.integer()?,
        is_quiet: cells.flag()?,
        signals: {
            let words: Vec<String> = cells.json()?;
            let signal =
                |word: &String| ProcessSignal::of_word(word).ok_or_else(|| cells.wrong("has an unknown signal"));
            words.iter().map(signal).collect::<Result<_, _>>()?
        },
    })
}
