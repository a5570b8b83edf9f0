//! Programs that write as fast as they can, on every node.

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

/// A job for each node with a program that holds a lock, and one with a program that writes 30 MB of short lines.
fn write_jobs(sandbox: &Sandbox) {
    for name in NAMES {
        let job = |program: &str| format!("program: {program}\nnodes: [{name}]\nlock: true\nttl: 3s\n");
        sandbox.put(&format!("jobs/guard/{name}.yaml"), &job("exec sleep 1000"));
        sandbox.put(&format!("jobs/flood/{name}.yaml"), &job("seq 1 4000000"));
    }
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

/// The store serves one request at a time, so each request for an output is small, and locks are renewed meanwhile.
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
        sandbox.done(&["run", &format!("flood/{name}")]);
    }
    let whole: String = (1..=4_000_000).map(|number: u32| format!("{number}\n")).collect();
    let mut stored = 0;
    for name in NAMES {
        let job = format!("flood/{name}");
        eventually("it has ended", || last_run(&sandbox, &job)["state"] == "success");
        let id = last_run(&sandbox, &job)["id"].as_str().expect("an id").to_owned();
        let text = sandbox.server.cli(&["get", &format!("{{cronken}}:cronhold:output:{id}")]);
        let text = text.trim_end();
        assert!(text.starts_with(&whole[..HEAD]) && text.ends_with(whole[whole.len() - TAIL..].trim_end()));
        stored += text.len() as u64;
        let lines = format!("{{cronken}}:rundata:output:{id}");
        let kept: u64 = sandbox.server.cli(&["zcard", &lines]).trim().parse().expect("a number");
        assert!((20..=LINES_KEPT).contains(&kept), "{kept} lines");
        assert_eq!(sandbox.server.cli(&["zrange", &lines, "-1", "-1"]).trim(), "4000000");
    }
    for (guard, node) in guards.iter().zip(&nodes) {
        assert_eq!(last_run(&sandbox, guard)["state"], "running", "{}", node.log_text());
    }
    let appends = calls(&sandbox, "append");
    assert!(stored <= appends * BYTES_PER_CALL, "{stored} bytes in {appends} calls");
}
