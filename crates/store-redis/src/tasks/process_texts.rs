//! The texts in which worker processes are stored: our own record, and what Sidekiq's API reads.

use cronhold_core::task::{ClassName, JsonText, QueueName, StepId, TaskRecord};
use cronhold_schedule::Instant;
use cronhold_store::tasks::process::PROCESS_TTL;
use cronhold_store::tasks::{ProcessId, ProcessSignal, WorkerProcess};
use serde::{Deserialize, Serialize};

use super::RedisTaskError;
use super::keys::TaskKeys;
use super::texts::{queue_entry, seconds_text};

/// Seconds after which Sidekiq's keys of a process expire without a heartbeat.
const EXPIRE_SECS: &str = "60";

/// Our own record of a process.
#[derive(Serialize, Deserialize)]
struct ProcessText {
    queue: QueueName,
    classes: Vec<ClassName>,
    concurrency: u32,
    /// Microseconds, as all times here.
    started_at: i64,
    beat_at: i64,
    busy: u32,
    quiet: bool,
}

/// What a process makes now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkItem {
    pub(super) step: StepId,
    pub(super) queue: QueueName,
    /// The entry as text.
    pub(super) payload: String,
    pub(super) since: Instant,
}

impl WorkItem {
    /// The step of a task.
    pub(super) fn of_task(task: &TaskRecord, step: StepId, now: Instant) -> Self {
        let since = task.ran_at.unwrap_or(now);
        let entry = since.micros().max(0).cast_unsigned();
        Self { step, queue: task.queue.clone(), payload: queue_entry(task, entry), since }
    }
}

pub(super) fn process_text(process: &WorkerProcess) -> String {
    let text = ProcessText {
        queue: process.queue.clone(),
        classes: process.classes.clone(),
        concurrency: process.concurrency,
        started_at: process.started_at.micros(),
        beat_at: process.beat_at.micros(),
        busy: process.busy,
        quiet: process.is_quiet,
    };
    serde_json::to_string(&text).expect("names and numbers can be JSON")
}

pub(super) fn process_of_text(id: &ProcessId, text: &str) -> Result<WorkerProcess, RedisTaskError> {
    let text: ProcessText =
        serde_json::from_str(text).map_err(|error| RedisTaskError::damaged("cronhold:processes", &error))?;
    Ok(WorkerProcess {
        id: id.clone(),
        queue: text.queue,
        classes: text.classes,
        concurrency: text.concurrency,
        started_at: Instant::from_micros(text.started_at),
        beat_at: Instant::from_micros(text.beat_at),
        busy: text.busy,
        is_quiet: text.quiet,
        signals: Vec::new(),
    })
}

/// The signal that Sidekiq's API has sent. Signals that ask for something else are not for us.
pub(super) fn signal_of_text(text: &str) -> Option<ProcessSignal> {
    match text {
        "TSTP" | "USR1" => Some(ProcessSignal::Quiet),
        "TERM" => Some(ProcessSignal::Stop),
        _ => None,
    }
}

pub(super) const fn signal_text(signal: ProcessSignal) -> &'static str {
    match signal {
        ProcessSignal::Quiet => "TSTP",
        ProcessSignal::Stop => "TERM",
    }
}

/// The commands that write Sidekiq's keys for a process that is alive at `now`, or remove them.
pub(super) fn sidekiq_commands(keys: &TaskKeys, process: &WorkerProcess, now: Instant) -> Vec<Vec<String>> {
    let text = |text: &str| text.to_owned();
    let (set, hash) = (keys.of("processes"), keys.process(&process.id, ""));
    if process.beat_at.plus(PROCESS_TTL) <= now {
        let work = [":work", ":workers"].map(|rest| keys.process(&process.id, rest));
        let [work, workers] = work;
        return vec![vec![text("SREM"), set, process.id.to_string()], vec![text("DEL"), hash, work, workers]];
    }
    let fields = [
        ("info", info_text(process)),
        ("busy", process.busy.to_string()),
        ("beat", seconds_text(process.beat_at)),
        ("quiet", process.is_quiet.to_string()),
        ("rss", resident_kilobytes().to_string()),
        ("rtt_us", text("0")),
    ];
    let mut write = vec![text("HSET"), hash.clone()];
    write.extend(fields.into_iter().flat_map(|(field, value)| [text(field), value]));
    let expire = vec![text("EXPIRE"), hash, text(EXPIRE_SECS)];
    vec![vec![text("SADD"), set, process.id.to_string()], write, expire]
}

/// The commands that replace what a process makes now, in both keys that versions of Sidekiq read.
pub(super) fn work_commands(keys: &TaskKeys, process: &ProcessId, work: &[WorkItem]) -> Vec<Vec<String>> {
    let mut commands: Vec<Vec<String>> = Vec::new();
    for rest in [":work", ":workers"] {
        let key = keys.process(process, rest);
        commands.push(vec!["DEL".to_owned(), key.clone()]);
        commands.extend(added_work_commands(&key, work));
    }
    commands
}

/// The commands that add what a process makes to one of the keys.
pub(super) fn added_work_commands(key: &str, work: &[WorkItem]) -> Vec<Vec<String>> {
    let mut commands: Vec<Vec<String>> = Vec::new();
    for item in work {
        let (queue, payload) = (JsonText::of_text(item.queue.as_str()), JsonText::of_text(&item.payload));
        let value = format!(r#"{{"queue":{queue},"payload":{payload},"run_at":{}}}"#, item.since.secs());
        commands.push(vec!["HSET".to_owned(), key.to_owned(), item.step.to_string(), value]);
    }
    if !work.is_empty() {
        commands.push(vec!["EXPIRE".to_owned(), key.to_owned(), EXPIRE_SECS.to_owned()]);
    }
    commands
}

/// What Sidekiq's API knows about a process.
fn info_text(process: &WorkerProcess) -> String {
    let mut parts = process.id.as_str().split(':');
    let host = JsonText::of_text(parts.next().unwrap_or_default());
    let pid: u64 = parts.next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
    let (queue, identity) = (JsonText::of_text(process.queue.as_str()), JsonText::of_text(process.id.as_str()));
    let (started_at, concurrency) = (seconds_text(process.started_at), process.concurrency);
    format!(
        r#"{{"hostname":{host},"started_at":{started_at},"pid":{pid},"tag":"cronhold","concurrency":{concurrency},"queues":[{queue}],"labels":[],"identity":{identity}}}"#
    )
}

/// The resident memory of this process; 0 where the system does not tell.
fn resident_kilobytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok()).map_or(0, |pages| pages * 4)
}
