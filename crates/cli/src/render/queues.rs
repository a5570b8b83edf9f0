//! Queues of tasks, and worker processes.

use std::io::{self, Write};

use cronhold_api::{QueueReport, WorkerReport};

use super::{LocalTimeFormat, TextTable};

/// Prints queues with their classes.
pub(crate) fn queues(queues: &[QueueReport], colours: bool, out: &mut dyn Write) -> io::Result<()> {
    if queues.is_empty() {
        return writeln!(out, "no queues; a worker that registers its classes creates one");
    }
    let mut table = TextTable::new(&["QUEUE", "READY", "WORKERS", "CLASSES"]);
    for queue in queues {
        let classes: Vec<&str> = queue.classes.keys().map(String::as_str).collect();
        table.row([
            queue.queue.clone().into(),
            queue.ready.to_string().into(),
            queue.workers.to_string().into(),
            classes.join(" ").into(),
        ]);
    }
    table.write(colours, out)
}

/// Prints worker processes.
pub(crate) fn workers(
    workers: &[WorkerReport],
    clock: &LocalTimeFormat,
    colours: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if workers.is_empty() {
        return writeln!(out, "no worker is alive");
    }
    let mut table = TextTable::new(&["WORKER", "QUEUE", "BUSY", "STARTED", "HEARTBEAT", "NOTES", "CLASSES"]);
    for worker in workers {
        let mut notes: Vec<String> = worker.signals.iter().map(|signal| format!("{signal} requested")).collect();
        if worker.quiet {
            notes.insert(0, "begins no further steps".to_owned());
        }
        table.row([
            worker.id.clone().into(),
            worker.queue.clone().into(),
            format!("{} of {}", worker.busy, worker.concurrency).into(),
            clock.at(worker.started_at).into(),
            clock.relative(worker.beat).into(),
            notes.join(", ").into(),
            worker.classes.join(" ").into(),
        ]);
    }
    table.write(colours, out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::jobs::tests::clock;
    use super::*;

    #[test]
    fn queues_and_workers_are_shown_in_tables() {
        let found =
            json!([{"queue": "core", "ready": 12, "workers": 1, "classes": {"Map": {}, "Sum": {"inports": {}}}}]);
        let found: Vec<QueueReport> = serde_json::from_value(found).expect("queues");
        let processes = json!([{"id": "web-1:4711:5f3a", "queue": "core", "classes": ["Map", "Sum"], "concurrency": 4,
            "busy": 2, "quiet": true, "started_at": "2026-11-16T11:00:00Z", "beat": "2026-11-16T11:59:56Z",
            "signals": ["stop"]}]);
        let processes: Vec<WorkerReport> = serde_json::from_value(processes).expect("workers");
        let mut out = Vec::new();
        queues(&found, false, &mut out).expect("written");
        queues(&[], false, &mut out).expect("written");
        workers(&processes, &clock(), false, &mut out).expect("written");
        workers(&[], &clock(), false, &mut out).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("text"));
    }
}
