//! `cronhold bench` on a fresh SQLite file: its output, and that nothing of it is left, however it ends.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use cronhold_cli::BenchFigure;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::processes::{eventually, processes};
use super::sandbox::{Sandbox, transcript_of};

/// The shortest benchmark.
const SHORT: [&str; 3] = ["bench", "--seconds", "5"];

/// Figures of a store on a server.
const SHARED_STORE: [BenchFigure; 2] = [BenchFigure::RoundTripMedian, BenchFigure::RoundTripP99];

/// Scratch directories in the data directory.
fn scratch_directories(sandbox: &Sandbox) -> Vec<PathBuf> {
    let entries = fs::read_dir(sandbox.path("home")).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.to_string_lossy().contains("cronhold-bench-")).collect()
}

/// Whether a process has this path in its command line, as a keeper has.
fn is_in_use(path: &str) -> bool {
    processes().any(|pid| {
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command_line).contains(path)
    })
}

#[test]
fn bench_prints_every_figure_and_leaves_nothing() {
    let sandbox = Sandbox::empty("bench");
    fs::create_dir(sandbox.path("home")).expect("a directory");
    let output = sandbox.run_command(&[&SHORT[..], &["-o", "json"]].concat());
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*err), (Some(0), ""), "there is no progress without a terminal");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a JSON list");
    let expected = BenchFigure::ALL.into_iter().filter(|figure| !SHARED_STORE.contains(figure));
    let expected: Vec<(&str, &str)> = expected.map(|figure| (figure.name(), figure.unit())).collect();
    let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
    let found: Vec<(String, String)> = rows.iter().map(|row| (text(row, "what"), text(row, "unit"))).collect();
    let found: Vec<(&str, &str)> = found.iter().map(|(what, unit)| (what.as_str(), unit.as_str())).collect();
    assert_eq!(found, expected);
    for row in &rows {
        assert!(row["value"].as_f64().is_some_and(|value| value > 0.0), "{row}");
        assert_eq!(row.as_object().map(serde_json::Map::len), Some(3), "{row}");
    }
    assert_eq!(fs::read_dir(sandbox.path("home")).expect("there").count(), 0);
}

#[test]
fn interrupted_bench_leaves_nothing() {
    // Before and while there is a keeper.
    for (name, step) in [("claims", "claims"), ("processes", "process-rate/keeper/socket")] {
        let sandbox = Sandbox::empty(&format!("bench-{name}"));
        fs::create_dir(sandbox.path("home")).expect("a directory");
        let mut command = sandbox.command(&SHORT);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        eventually(step, || scratch_directories(&sandbox).iter().any(|path| path.join(step).exists()));
        let path = scratch_directories(&sandbox).remove(0).display().to_string();
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        let shown = transcript_of(&SHORT, &output);
        assert!(output.stdout.is_empty() && shown.contains("received SIGTERM"), "{shown}");
        assert_eq!(output.status.code(), Some(1), "{shown}");
        assert_eq!(fs::read_dir(sandbox.path("home")).expect("there").count(), 0, "{step}");
        assert!(!is_in_use(&path), "a keeper is left after {step}");
    }
}

/// The data directory need not exist. What cannot be used is refused before anything is measured.
#[test]
fn bench_refuses_unusable_directories_and_stores() {
    let sandbox = Sandbox::empty("bench-refused");
    sandbox.put("file", "");
    for (args, code, expected) in [
        (&["--data", "file"][..], 1, "name a writable directory with --data"),
        (&["--seconds", "4"], 2, "5..=600"),
        (&["--store", "postgres://localhost"], 2, "this build has no store of the kind `postgres`"),
        (&["--store", "redis://127.0.0.1:1"], 3, "hint: check that it is running"),
    ] {
        let args = [&["bench"], args].concat();
        let output = sandbox.run_command(&args);
        let shown = transcript_of(&args, &output);
        assert!(output.status.code() == Some(code) && shown.contains(expected), "{shown}");
    }
    let mut names: Vec<_> =
        fs::read_dir(sandbox.path("")).expect("there").flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, ["file", "jobs"]);
}
