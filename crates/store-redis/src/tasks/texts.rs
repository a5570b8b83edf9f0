//! The texts in which tasks are stored: records, times and entries of queues.

use cronhold_core::task::{
    ChildName, ClassName, JsonText, QueueName, StepId, StepLease, TaskId, TaskRecord, TaskStatus, log,
};
use cronhold_schedule::Instant;
use serde::Deserialize;

use super::RedisTaskError;
use super::facts::{FactValues, number};

/// The keys of a task whose values make a [`super::facts::TaskFact::Task`], in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskValue {
    Worker,
    Status,
    CreatedAt,
    CreatedBy,
    RanAt,
    Parent,
    Record,
    Lock,
    WorkerLock,
    Rate,
}

/// The JSON in `job:ID:worker`.
#[derive(Deserialize)]
struct WorkerText {
    queue: QueueName,
    class: ClassName,
    args: Option<JsonText>,
}

/// A task as it is stored, with what is not part of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredTask {
    pub(super) task: TaskRecord,
    /// Who holds `job:ID:lock`; empty if it is free.
    pub(super) lock: String,
    /// Whether a worker of SideJob is about to take the lock.
    pub(super) has_waiting_worker: bool,
}

impl StoredTask {
    /// Whether no other client holds the task.
    pub(super) fn lock_is_free_or_own(&self) -> bool {
        self.lock.is_empty() || self.task.lease.is_some()
    }
}

/// What our own key of a task has, as fields that are separated by blanks. `-` is a missing one.
const RECORD_FIELDS: usize = 7;

/// Reads the values of a task; `None` if it does not exist. `minute` is the one of its counter of steps.
pub(super) fn read_task(id: TaskId, values: &FactValues, minute: i64) -> Result<Option<StoredTask>, RedisTaskError> {
    let damaged = |what: &str, why: &dyn std::fmt::Display| RedisTaskError::damaged(&format!("job:{id}:{what}"), why);
    let text = |value: TaskValue| {
        let bytes = values.get(value as usize).map_or(&[][..], Vec::as_slice);
        std::str::from_utf8(bytes).map_err(|error| damaged("*", &error))
    };
    let worker = text(TaskValue::Worker)?;
    if worker.is_empty() {
        return Ok(None);
    }
    let WorkerText { queue, class, args } = serde_json::from_str(worker).map_err(|error| damaged("worker", &error))?;
    let args = args.filter(|args| args.as_str() != "null");
    let status = match text(TaskValue::Status)? {
        // A task that another client is about to create.
        "" => TaskStatus::Completed,
        status => TaskStatus::parse(status).map_err(|error| damaged("status", &error))?,
    };
    let created_at = match text(TaskValue::CreatedAt)? {
        "" => Instant::EPOCH,
        at => Instant::parse(at).map_err(|error| damaged("created_at", &error))?,
    };
    let ran_at = match text(TaskValue::RanAt)? {
        "" => None,
        at => Some(Instant::parse(at).map_err(|error| damaged("ran_at", &error))?),
    };
    let parent = match text(TaskValue::Parent)? {
        "" => None,
        parent => Some(TaskId::parse(parent).map_err(|error| damaged("parent", &error))?),
    };
    let own = text(TaskValue::Record)?;
    let mut fields = own.splitn(RECORD_FIELDS + 1, ' ');
    let mut next = || fields.next().filter(|field| *field != "-" && !field.is_empty());
    let (entry, run_at, step, until, last) = (next(), next(), next(), next(), next());
    let (lost, refused, name) = (next(), next(), next());
    let instant = |text: &str| text.parse().ok().map(Instant::from_micros);
    let step_id = |text: &str| StepId::parse(text).ok();
    // SideJob stores no name with the parent, so that a child that it adopted has its number here.
    let child_name = name.map_or_else(|| ChildName::parse(&id.to_string()), ChildName::parse);
    let child_name = child_name.map_err(|error| damaged("parent", &error))?;
    let lease = step.and_then(step_id).zip(until.and_then(instant));
    let task = TaskRecord {
        id,
        queue,
        class,
        args,
        status,
        created_at,
        created_by: text(TaskValue::CreatedBy)?.to_owned(),
        ran_at,
        parent: parent.map(|parent| (parent, child_name)),
        entry: entry.and_then(|text| text.parse().ok()),
        run_at: run_at.and_then(instant),
        lease: lease.map(|(step, until)| StepLease { step, until }),
        last_step: last.and_then(step_id),
        lost_steps: lost.and_then(|text| text.parse().ok()).unwrap_or(0),
        refused_steps: refused.and_then(|text| text.parse().ok()).unwrap_or(0),
        rate_minute: minute,
        rate_count: values.get(TaskValue::Rate as usize).and_then(|text| number(text)).unwrap_or(0),
    };
    let lock = text(TaskValue::Lock)?.to_owned();
    Ok(Some(StoredTask { task, lock, has_waiting_worker: !text(TaskValue::WorkerLock)?.is_empty() }))
}

/// What our own key of a task has.
pub(super) fn record_text(task: &TaskRecord) -> String {
    fn field<T: ToString>(value: Option<T>) -> String {
        value.map_or_else(|| "-".to_owned(), |value| value.to_string())
    }
    let mut fields = vec![
        field(task.entry),
        field(task.run_at.map(Instant::micros)),
        field(task.lease.map(|lease| lease.step)),
        field(task.lease.map(|lease| lease.until.micros())),
        field(task.last_step),
        task.lost_steps.to_string(),
        task.refused_steps.to_string(),
    ];
    fields.extend(task.parent.as_ref().map(|(_, name)| name.to_string()));
    fields.join(" ")
}

/// What `job:ID:worker` has.
pub(super) fn worker_text(task: &TaskRecord) -> String {
    let (queue, class) = (JsonText::of_text(task.queue.as_str()), JsonText::of_text(task.class.as_str()));
    let args = task.args.as_ref().map_or("null", JsonText::as_str);
    format!(r#"{{"queue":{queue},"class":{class},"args":{args}}}"#)
}

/// A time as SideJob writes it.
pub(super) fn time_text(at: Instant) -> String {
    log::timestamp(at)
}

/// A time as Sidekiq writes it: seconds with a fraction, also if it is zero.
pub(super) fn seconds_text(at: Instant) -> String {
    let (secs, micros) = (at.micros().div_euclid(1_000_000), at.micros().rem_euclid(1_000_000));
    let fraction = format!("{micros:06}");
    let fraction = fraction.trim_end_matches('0');
    format!("{secs}.{}", if fraction.is_empty() { "0" } else { fraction })
}

/// The entry of a task in `schedule`. It is the same text each time, so that a task is there once.
pub(super) fn schedule_entry(task: &TaskRecord) -> String {
    format!("{}}}", entry_head(task))
}

/// The entry of a task in its queue.
pub(super) fn queue_entry(task: &TaskRecord, entry: u64) -> String {
    let at = Instant::from_micros(i64::try_from(entry).unwrap_or(i64::MAX));
    format!(r#"{},"enqueued_at":{}}}"#, entry_head(task), seconds_text(at))
}

fn entry_head(task: &TaskRecord) -> String {
    let (queue, class) = (JsonText::of_text(task.queue.as_str()), JsonText::of_text(task.class.as_str()));
    let args = task.args.as_ref().map_or("[]", JsonText::as_str);
    let created_at = seconds_text(task.created_at);
    let id = task.id;
    format!(r#"{{"retry":false,"queue":{queue},"jid":{id},"class":{class},"args":{args},"created_at":{created_at}"#)
}

/// What an entry of a queue is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QueueEntry {
    Task {
        id: TaskId,
        class: String,
    },
    /// A job of a plain Sidekiq client.
    Bare {
        class: String,
    },
    /// It is not an entry of Sidekiq.
    Unreadable,
}

#[derive(Deserialize)]
struct EntryForm {
    jid: serde_json::Value,
    class: String,
}

impl QueueEntry {
    pub(super) fn parse(text: &[u8]) -> Self {
        let Ok(form) = serde_json::from_slice::<EntryForm>(text) else { return Self::Unreadable };
        match form.jid.as_u64().map(TaskId::new) {
            Some(Some(id)) => Self::Task { id, class: form.class },
            Some(None) => Self::Unreadable,
            None => Self::Bare { class: form.class },
        }
    }
}
