//! Programs that write as fast as they can, on every node.

use std::ops::{Range, RangeInclusive};

use cronhold_schedule::Instant;
use serde_json::Value;

use crate::processes::eventually;
use crate::sandbox::Sandbox;

const NAMES: [&str; 3] = ["one", "two", "three"];
/// Bytes that are kept of the beginning and of the end of an output.
const HEAD: usize = 1 << 20;
const TAIL: usize = 9 << 20;
/// Bytes that one call appends at most, with a note about omitted ones.
const BYTES_PER_CALL: u64 = 64 * 1024 + 100;
/// Lines that Cronken's key keeps.
const LINES_KEPT: u64 = 10_000;
/// Lines that a program writes at last: over 300 MB.
const LINES: u32 = 36_000_000;
/// Seconds after which a lock that is not renewed has expired.
const TTL: i64 = 10;
/// More runs than the test creates.
const RUNS_MAX: &str = "100000";

/// A job for each node with a program that holds a lock, one with a program that writes as fast as it can
/// until there is a file `stop`, and a job that is due every second on any node.
fn write_jobs(sandbox: &Sandbox) {
    let stop = sandbox.path("stop");
    let flood = format!("'until [ -e {} ]; do seq 1 1000000; done; seq 1 {LINES}'", stop.display());
    for name in NAMES {
        let job = |program: &str| format!("program: {program}\nnodes: [{name}]\nlock: true\nttl: {TTL}s\n");
        sandbox.put(&format!("jobs/guard/{name}.yaml"), &job("exec sleep 1000"));
        sandbox.put(&format!("jobs/flood/{name}.yaml"), &job(&flood));
    }
    sandbox.put("jobs/tick.yaml", "program: ['true']\nschedule: '* * * * * * *'\noverlap: allow\n");
}

/// The lines with these numbers.
fn lines(numbers: RangeInclusive<u32>) -> String {
    numbers.map(|number| format!("{number}\n")).collect()
}

fn time(value: &Value, name: &str) -> Instant {
    Instant::parse(value[name].as_str().expect("a time")).expect("an instant")
}

/// The first and the last moment of all programs that write.
fn flood_period(sandbox: &Sandbox) -> Range<Instant> {
    let floods = NAMES.map(|name| last_run(sandbox, &format!("flood/{name}"))["times"].clone());
    let began = floods.iter().map(|times| time(times, "running")).min().expect("floods");
    let ended = floods.iter().map(|times| time(times, "finished")).max().expect("floods");
    began..ended
}

fn ticks(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.json(&["runs", "tick", "-n", RUNS_MAX]).as_array().expect("runs").clone()
}

/// Waits until occurrences have had successful runs for longer than a lock lasts.
fn wait_longer_than_a_lock_lasts(sandbox: &Sandbox) {
    let times =
        || ticks(sandbox).into_iter().filter(|run| run["state"] == "success").map(|run| time(&run, "nominal_time"));
    eventually("a first occurrence succeeds", || times().next().is_some());
    let begun = times().max().expect("a first occurrence succeeded").secs();
    eventually("it runs on", || times().any(|at| at.secs() > begun + TTL + 2));
}

/// Asserts that every occurrence that came while a program was writing has a successful run.
fn assert_claims_went_on(sandbox: &Sandbox) {
    let flood = flood_period(sandbox);
    let meanwhile = || ticks(sandbox).into_iter().filter(|run| flood.contains(&time(run, "nominal_time")));
    eventually("each has ended", || meanwhile().all(|run| !run["times"]["finished"].is_null()));
    let runs: Vec<Value> = meanwhile().collect();
    let seconds = usize::try_from(flood.end.secs() - flood.start.secs()).expect("it is small");
    assert!(runs.len() >= seconds, "{} of {seconds} occurrences", runs.len());
    assert!(runs.iter().all(|run| run["state"] == "success"), "{runs:#?}");
    sandbox.done(&["holes", "--until", &flood.end.to_string()]);
}

fn last_run(sandbox: &Sandbox, job: &str) -> Value {
    sandbox.json(&["runs", job])[0].clone()
}

fn calls(sandbox: &Sandbox, command: &str) -> u64 {
    let stats = sandbox.server.cli(&["info", "commandstats"]);
    let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:"))).unwrap_or_default();
    let calls = line.split("calls=").nth(1).and_then(|rest| rest.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}

/// The store serves one request at a time, so each request for an output is small. Meanwhile locks are renewed, and
/// occurrences are claimed.
#[test]
fn chatty_programs_on_all_nodes_end_no_other_program() {
    let sandbox = Sandbox::new("flood");
    write_jobs(&sandbox);
    let nodes = NAMES.map(|name| sandbox.up(name, &["--label", name, "--jobs", "jobs"]));
    let guards = NAMES.map(|name| format!("guard/{name}"));
    for guard in &guards {
        eventually("it is a job", || sandbox.has_job(guard));
        sandbox.done(&["run", guard]);
        eventually("it runs", || last_run(&sandbox, guard)["state"] == "running");
    }
    for name in NAMES {
        let job = format!("flood/{name}");
        sandbox.done(&["run", &job]);
        eventually("it writes", || last_run(&sandbox, &job)["state"] == "running");
    }
    wait_longer_than_a_lock_lasts(&sandbox);
    sandbox.put("stop", "");
    let (head, tail) = (lines(1..=200_000), lines(LINES - 1_200_000..=LINES));
    let (head, tail) = (&head[..HEAD], tail[tail.len() - TAIL..].trim_end());
    let mut stored = 0;
    for name in NAMES {
        let job = format!("flood/{name}");
        eventually("it has ended", || last_run(&sandbox, &job)["state"] == "success");
        let id = last_run(&sandbox, &job)["id"].as_str().expect("an id").to_owned();
        let text = sandbox.server.cli(&["get", &format!("{{cronken}}:cronhold:output:{id}")]);
        let text = text.trim_end();
        assert!(text.starts_with(head) && text.ends_with(tail));
        stored += text.len() as u64;
        let lines = format!("{{cronken}}:rundata:output:{id}");
        let kept: u64 = sandbox.server.cli(&["zcard", &lines]).trim().parse().expect("a number");
        assert!((20..=LINES_KEPT).contains(&kept), "{kept} lines");
        assert_eq!(sandbox.server.cli(&["zrange", &lines, "-1", "-1"]).trim(), LINES.to_string());
    }
    for (guard, node) in guards.iter().zip(&nodes) {
        assert_eq!(last_run(&sandbox, guard)["state"], "running", "{}", node.log_text());
    }
    assert_claims_went_on(&sandbox);
    let appends = calls(&sandbox, "append");
    assert!(stored <= appends * BYTES_PER_CALL, "{stored} bytes in {appends} calls");
}
