//! What changes the status of a task.

use crate::task::{StatusCause, TaskStatus};

/// Each line has a cause, then the statuses that it changes and the status after it. All other statuses stay.
const TABLE: &str = "
Run: running suspended completed -> queued
ForcedRun: running suspended completed failed terminating terminated -> queued
Terminate: queued running suspended completed failed -> terminating
Lease: queued -> running
Complete: running -> completed
Suspend: running -> suspended
Fail: running -> failed
ShutDown: terminating -> terminated
GiveBack: running -> queued
GiveUp: running -> failed
GiveUp: terminating -> terminated
ClassMissing: queued running suspended completed failed terminating -> terminated
";

#[test]
fn table_of_statuses_is_complete() {
    let mut expected = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty()) {
        let (cause, rest) = line.split_once(": ").expect("a cause");
        let (before, after) = rest.split_once(" -> ").expect("a status after it");
        expected.extend(before.split(' ').map(|before| format!("{cause} {before} {after}")));
    }
    let mut found = Vec::new();
    for cause in StatusCause::ALL {
        for status in TaskStatus::ALL {
            found.extend(status.after(cause).map(|after| format!("{cause:?} {status} {after}")));
        }
    }
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn unforced_run_never_wakes_an_ended_task() {
    for status in TaskStatus::ALL {
        let runs = status == TaskStatus::Queued || status.after(StatusCause::Run) == Some(TaskStatus::Queued);
        assert_eq!(runs, status.is_runnable(), "{status}");
    }
}

#[test]
fn statuses_are_stored_as_words() {
    for status in TaskStatus::ALL {
        assert_eq!(TaskStatus::parse(status.as_str()), Ok(status));
    }
    let error = TaskStatus::parse("done").expect_err("not a status").to_string();
    assert!(error.contains("`done`") && error.contains("queued, running"), "{error}");
}
