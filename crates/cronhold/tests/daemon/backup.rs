//! `cronhold store backup` while a daemon writes to the store.

use std::fs;
use std::process::Command;

use super::daemon::{Sandbox, Stored, transcript};

#[test]
fn backup_succeeds_while_daemon_runs() {
    let sandbox = Sandbox::new("backup");
    for number in 0..50 {
        sandbox.put_job(&format!("busy/{number}"), "program: {noop: true}\nschedule: {every: 1s}\n");
    }
    let mut daemon = sandbox.up();
    daemon.wait_for_lines(100);
    let backup = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
        command.env_clear().current_dir(sandbox.path("")).args(["store", "backup"]).args(args);
        transcript(&mut command)
    };
    let shown = [
        backup(&["--data", "home", "copy.db"]),
        backup(&["--store", "sqlite:home/cronhold.db", "copy.db"]),
        backup(&["--data", "nowhere", "other.db"]),
        backup(&["other.db"]),
    ];
    insta::assert_snapshot!(shown.join("\n"));
    let files: Vec<_> =
        fs::read_dir(sandbox.path("")).expect("there").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(files.len(), 3, "copy, home and jobs: {files:?}");

    // The copy contains what was durable when it was created, and the daemon continues.
    let copy = Stored::read(&sandbox.path("copy.db"));
    assert_eq!(copy.jobs.len(), 50);
    assert!(copy.runs.len() >= 50);
    daemon.wait_for_lines(100);
    assert!(sandbox.stored().runs.len() > copy.runs.len());

    // The copy can replace the store.
    assert_eq!(daemon.stop().0.code(), Some(0));
    fs::remove_dir_all(sandbox.path("home")).expect("there");
    fs::create_dir(sandbox.path("home")).expect("gone");
    fs::rename(sandbox.path("copy.db"), sandbox.path("home/cronhold.db")).expect("there");
    let mut daemon = sandbox.up();
    daemon.wait_for_event("run_state", &[("state", "success")]);
    daemon.kill();
}
