//! The JSON output that programs rely on: the names of fields, and times in RFC 3339 format.

use std::collections::BTreeSet;

use serde_json::Value;

use super::processes::eventually;
use super::sandbox::Sandbox;

const RUN: [&str; 18] = [
    "id",
    "number",
    "job",
    "args",
    "state",
    "reason",
    "nominal_time",
    "attempt",
    "retry_of",
    "retried_by",
    "due",
    "rerun_of",
    "node",
    "exit_code",
    "signal",
    "times",
    "output_bytes",
    "tail",
];
const TIMES: [&str; 6] = ["scheduled", "waiting", "starting", "running", "stopping", "finished"];
const JOB: [&str; 6] = ["id", "schedule", "next", "paused", "labels", "errors"];

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn set<'a>(names: &[&'a str]) -> BTreeSet<&'a str> {
    names.iter().copied().collect()
}

#[test]
fn json_has_the_documented_fields() {
    let sandbox = Sandbox::up("fields", &[]);
    sandbox.done(&["add", "--label", "a", "hello", "0 3 1 1 *", "echo", "hi"]);
    sandbox.run("hello");
    let runs = sandbox.json(&["runs", "hello"]);
    assert_eq!(keys(&runs[0]), set(&RUN));
    assert_eq!(keys(&runs[0]["times"]), set(&TIMES));
    assert!(keys(&sandbox.json(&["runs", "hello#1"])[0]).is_superset(&set(&RUN)));
    for job in sandbox.json(&["list"]).as_array().expect("an array") {
        assert!(keys(job).is_superset(&set(&JOB)), "{job}");
    }
}

/// More than twenty consecutive skips for the same reason become one record with a count.
#[test]
fn repeated_skips_become_one_counted_record() {
    let busy = "program: [sleep, '600']\nschedule: {every: 1s}\n";
    let sandbox = Sandbox::up("spans", &[("busy", busy)]);
    let mut skipped = Value::Null;
    eventually("many were skipped", || {
        skipped = sandbox.json(&["runs", "busy", "--state", "skipped", "--limit", "1"]);
        skipped[0]["count"].as_u64().is_some_and(|count| count > 1)
    });
    let mut expected = set(&RUN);
    expected.extend(["from", "to", "count"]);
    assert_eq!(keys(&skipped[0]), expected);
    assert_eq!(skipped[0]["reason"], "overlap");
    times(&skipped[0]).iter().for_each(|time| assert!(is_rfc_3339(time), "{time}"));
    let table = sandbox.done(&["runs", "busy", "--state", "skipped", "--limit", "1"]);
    assert!(table.contains("overlap") && table.contains(" occurrences until "), "{table}");
}

#[test]
fn every_time_is_in_rfc_3339_format() {
    let sandbox = Sandbox::up("times", &[]);
    sandbox.done(&["add", "hello", "0 3 1 1 *", "echo", "hi"]);
    sandbox.run("hello");
    sandbox.done(&["run", "hello", "--at", "2099-01-01"]);
    sandbox.done(&["pause", "hello"]);
    let mut seen = 0;
    for args in [
        ["runs"].as_slice(),
        &["runs", "hello#1"],
        &["list"],
        &["show", "hello"],
        &["nodes"],
        &["why", "hello"],
        &["holes"],
        &["next", "hello"],
        &["next", "0 3 * * *", "--timezone", "Asia/Kolkata"],
        &["explain", "0 3 * * *", "--timezone", "Asia/Kolkata"],
        &["backfill", "hello", "--from", "2020-01-01", "--dry-run"],
        &["pause", "all"],
        &["skip", "hello#2"],
    ] {
        let answer = sandbox.json(args);
        let times = times(&answer);
        assert!(!times.is_empty(), "{args:?}: {answer}");
        seen += times.len();
        times.iter().for_each(|time| assert!(is_rfc_3339(time), "{args:?}: {time}"));
    }
    assert!(seen > 30, "{seen} times");
}

/// Texts in the output that look like times.
fn times(value: &Value) -> Vec<String> {
    let is_time = |text: &str| {
        text.len() >= 10 && text[..4].bytes().all(|byte| byte.is_ascii_digit()) && text.as_bytes()[4] == b'-'
    };
    match value {
        Value::String(text) if text.is_char_boundary(4) && is_time(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(times).collect(),
        Value::Object(fields) => fields.values().flat_map(times).collect(),
        _ => Vec::new(),
    }
}

fn is_rfc_3339(text: &str) -> bool {
    let (head, tail) = text.split_at_checked("2026-11-16T06:53:36".len()).unwrap_or((text, ""));
    let shape: String = head.chars().map(|sign| if sign.is_ascii_digit() { 'd' } else { sign }).collect();
    let offset =
        tail.strip_prefix('.').map_or(tail, |digits| digits.trim_start_matches(|sign: char| sign.is_ascii_digit()));
    let shape_of_offset: String = offset.chars().map(|sign| if sign.is_ascii_digit() { 'd' } else { sign }).collect();
    shape == "dddd-dd-ddTdd:dd:dd" && ["Z", "+dd:dd", "-dd:dd"].contains(&shape_of_offset.as_str())
}
