//! `backfill`: runs occurrences without an outcome, once each.

use super::sandbox::Sandbox;

const JOBS: &[(&str, &str)] = &[
    ("yearly", "program: echo $CRONHOLD_NOMINAL_TIME\nschedule: 0 0 1 1 *\n"),
    ("bad", "program: exit 3\nschedule: 0 0 1 1 *\noverlap: allow\n"),
    ("hand", "program: ['true']\n"),
];

#[test]
fn backfill() {
    let sandbox = Sandbox::up("backfill", JOBS);
    let years =
        |job, rest: &[&'static str]| [&["backfill", job, "--from", "2020-01-01", "--to", "2022-06-01"], rest].concat();
    let commands = [
        years("yearly", &["--dry-run"]),
        years("yearly", &["--dry-run", "-o", "json"]),
        years("yearly", &[]),
        years("yearly", &[]),
        years("yearly", &["--dry-run"]),
        years("bad", &["-o", "json"]),
        years("bad", &["--dry-run"]),
        years("hand", &[]),
        vec!["backfill", "yearl", "--from", "2020-01-01"],
        vec!["backfill", "yearly", "--from", "soon"],
        vec!["backfill", "yearly", "--from", "2021-01-01", "--to", "2020-01-01"],
        years("yearly", &["--parallel", "2"]),
        years("yearly", &["--parallel", "0"]),
        vec!["backfill", "yearly"],
    ];
    let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
    insta::assert_snapshot!(sandbox.transcript(&commands));
}

/// Each occurrence runs once with its own nominal time, however often `backfill` is called.
#[test]
fn repeated_backfill_creates_each_run_once() {
    let sandbox = Sandbox::up("once", JOBS);
    let command = ["backfill", "yearly", "--from", "2020-01-01", "--to", "2024-06-01", "-o", "json"];
    for expected in [5, 0, 0] {
        let outcomes = sandbox.done(&command);
        let outcomes: serde_json::Value = serde_json::from_str(&outcomes).expect("JSON");
        assert_eq!(outcomes.as_array().map(Vec::len), Some(expected), "{outcomes}");
    }
    let runs = sandbox.json(&["runs", "yearly"]);
    let mut times: Vec<&str> =
        runs.as_array().expect("an array").iter().filter_map(|run| run["nominal_time"].as_str()).collect();
    times.sort_unstable();
    let years: Vec<String> = (2020..=2024).map(|year| format!("{year}-01-01T00:00:00Z")).collect();
    assert_eq!(times, years);
    for run in runs.as_array().expect("an array") {
        assert_eq!(run["tail"][0], run["nominal_time"], "{run}");
    }
    sandbox.done(&[&command[..], &["--all"]].concat());
    assert_eq!(sandbox.json(&["runs", "yearly"]).as_array().map(Vec::len), Some(10));
}
