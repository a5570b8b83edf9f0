//! Runs of Python nodes as our own verbs show them, with a daemon of ours and without one.

use serde_json::{Value, json};

use super::mixed_nodes::{MixedNodes, Node, RARELY};
use crate::processes::eventually;

/// The heading of the table of their runs, which follows ours.
const HEADING: &str = "Runs on Cronken nodes:";

#[test]
fn our_verbs_show_runs_of_python_nodes() {
    let mut mixed_nodes = MixedNodes::new("theirs");
    let gate = mixed_nodes.path("gate");
    let wait = format!("echo begun; until [ -e {} ]; do sleep 0.05; done; echo end", gate.display());
    mixed_nodes.client.call(
        "set_jobs",
        json!({"jobs": {
            "slow": {"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": wait, "lock": true, "ttl": 10}},
            "bad": {"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": "exit 3", "lock": true, "ttl": 10}},
            "mine": {"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": "echo hi", "lock": false, "ttl": 10}},
        }}),
    );
    // While no node of ours runs, Python runs the triggered jobs.
    let python = mixed_nodes.python("draco", RARELY);
    mixed_nodes.send("trigger", &json!("bad"));
    eventually("Python has run it", || {
        !mixed_nodes.client.call("dashboard", json!({}))["fail"].as_array().expect("runs").is_empty()
    });
    mixed_nodes.send("trigger", &json!("slow"));
    eventually("Python runs it", || {
        !mixed_nodes.client.call("dashboard", json!({}))["active"].as_array().expect("runs").is_empty()
    });

    let ours = mixed_nodes.ours("ours", "");
    eventually("its line is shown", || theirs(&ours, &["slow"])[0]["tail"] == json!(["begun"]));
    let shown: Vec<Value> = theirs(&ours, &[]).iter().map(shown_fields).collect();
    assert_eq!(shown, [json!(["slow", "running", "draco", null]), json!(["bad", "failure", "draco", 3])]);
    assert_eq!(theirs(&ours, &["bad"]).len(), 1);

    // Python holds the lock, so our node cannot start the job. `why` says so without an id, which no verb would accept.
    assert_eq!(ours.refused(&["run", "slow"]), "slow#1 skipped: lock\n");
    let why = ours.done(&["why", "slow"]);
    assert!(why.contains("on a foreign node"), "{why}");

    std::fs::write(gate, "").expect("written");
    eventually("it is over", || theirs(&ours, &["slow"])[0]["state"] == "success");
    let slow = theirs(&ours, &["slow"])[0].clone();
    assert_eq!(slow["tail"], json!(["begun", "end"]));
    assert!(slow["took_ms"].as_u64().is_some_and(|millis| millis > 0), "{slow}");

    // Our runs are not listed as theirs, although both are in the same keys.
    ours.done(&["run", "mine", "--wait"]);
    assert_eq!(theirs(&ours, &["mine"]), [] as [Value; 0]);
    let url = mixed_nodes.url();
    for way in [&[][..], &["--store", &url]] {
        let table = ours.done(&[way, &["runs"]].concat());
        let (own, others) = table.split_once(HEADING).unwrap_or_else(|| panic!("no second table: {table}"));
        assert!(own.contains("mine#1") && !own.contains("draco"), "{table}");
        let rows: Vec<Vec<&str>> = others.trim().lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["JOB", "ID", "STATE", "HOST", "STARTED", "TOOK"]);
        assert_eq!([rows[1][0], rows[1][2], rows[1][3]], ["slow", "success", "draco"], "{table}");
        assert_eq!([rows[2][0], rows[2][2], rows[2][3]], ["bad", "failure", "draco"], "{table}");
        assert_eq!(rows.len(), 3, "{table}");
        for narrowed in [&["runs", "mine"][..], &["runs", "--since", "1h"], &["runs", "--state", "success"]] {
            let table = ours.done(&[way, narrowed].concat());
            assert!(!table.contains(HEADING), "{narrowed:?}: {table}");
        }
    }
    let own = ours.json(&["runs"]);
    assert!(own.as_array().expect("runs").iter().all(|run| run["number"].is_u64()), "{own}");
    drop(python);
}

/// The runs of Python nodes that our node shows.
fn theirs(ours: &Node, args: &[&str]) -> Vec<Value> {
    ours.json(&[&["runs", "--peers"], args].concat()).as_array().expect("runs").clone()
}

/// The shown fields of a run, without ids and times.
fn shown_fields(run: &Value) -> Value {
    json!([run["job"], run["state"], run["host"], run["exit_code"]])
}
