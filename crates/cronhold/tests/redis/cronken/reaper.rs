//! Each side finishes dead runs of the other side, and leaves live runs alone.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::mixed_nodes::{MixedNodes, RARELY, signal};
use crate::processes::eventually;

/// A Python node with this heartbeat interval treats a run as dead after 3 seconds without a heartbeat.
const OFTEN: u32 = 2;

#[test]
fn python_reaper_keeps_our_long_run() {
    let mut mixed_nodes = MixedNodes::new("long");
    let job =
        |cmd: &str| json!({"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": cmd, "lock": true, "ttl": 3}});
    let gate = mixed_nodes.path("gate");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done", gate.display());
    mixed_nodes.client.call("set_jobs", json!({"jobs": {"long": job(&wait)}}));
    let ours = mixed_nodes.ours("ours", "&heartbeat=1s&stale=3s");
    let theirs = mixed_nodes.python("theirs", OFTEN);
    ours.done(&["run", "long"]);
    // By then the run would have been reaped twice if our node did not send heartbeats for it.
    let reaps = |mixed_nodes: &str| mixed_nodes.matches("Expiring runs: {}").count();
    let before = reaps(&theirs.log_text());
    eventually("their reaper has run four times", || reaps(&theirs.log_text()) >= before + 4);
    let page = mixed_nodes.client.call("dashboard", json!({}));
    assert_eq!((page["active"][0]["job"].clone(), page["fail"].clone()), (json!("long"), json!([])), "{page}");
    std::fs::write(gate, "").expect("written");
    eventually("it has ended well", || ours.runs("long")[0]["state"] == "success");
    let page = mixed_nodes.client.call("dashboard", json!({}));
    assert_eq!((page["success"][0]["status"].clone(), page["fail"].clone()), (json!("success"), json!([])), "{page}");
}

#[test]
fn our_reaper_finishes_runs_of_a_killed_python_node() {
    let mut mixed_nodes = MixedNodes::new("frozen");
    // The Python node writes the output after 1 second, and first extends the lock after half of the TTL. Not at the
    // same time: that extension reconnects to load its script, and a write without a reply is then sent again.
    let nap = json!({"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": "echo begun; sleep 300", "lock": true, "ttl": 4}});
    mixed_nodes.client.call("set_jobs", json!({"jobs": {"nap": nap}}));
    let theirs = mixed_nodes.python("theirs", RARELY);
    mixed_nodes.send("trigger", &json!("nap"));
    let active = |mixed_nodes: &mut MixedNodes| {
        mixed_nodes.client.call("dashboard", json!({}))["active"].as_array().expect("runs").clone()
    };
    eventually("it runs", || active(&mut mixed_nodes).len() == 1);
    let run: Value = active(&mut mixed_nodes)[0].clone();
    eventually("it has written", || mixed_nodes.client.call("output", json!({"run": run["id"]})) == json!(["begun\n"]));
    signal(&theirs, Signal::KILL);
    drop(theirs);
    let ours = mixed_nodes.ours("ours", "&heartbeat=1s&stale=3s");
    eventually("it runs no more", || active(&mut mixed_nodes).is_empty());
    let page = mixed_nodes.client.call("job_page", json!({"name": "nap"}));
    let found = &page["fail"][0];
    assert_eq!(
        (&found["id"], &found["host"], &found["status"]),
        (&run["id"], &json!("theirs"), &json!("frozen")),
        "{page}"
    );
    assert_eq!((&found["retcode"], &found["output"]), (&Value::Null, &json!("begun\n")), "{page}");
    // Its lock has expired, and our node can run the job.
    ours.done(&["run", "nap"]);
    eventually("it runs again", || ours.runs("nap")[0]["state"] == "running");
}
