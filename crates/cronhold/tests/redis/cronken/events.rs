//! Events that Cronken's own code sends and our nodes handle, and events of ours that Python nodes handle.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::mixed_nodes::{MixedNodes, Node, RARELY};
use crate::processes::eventually;

/// A job that runs on request until it is killed.
fn nap() -> Value {
    never("exec sleep 300")
}

fn never(cmd: &str) -> Value {
    json!({"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": cmd, "lock": true, "ttl": 10}})
}

fn is_paused(node: &Node, job: &str) -> bool {
    node.job(job).is_some_and(|job| job["paused"] == true)
}

#[test]
fn pause_events_apply_and_survive_a_restart() {
    let mut mixed_nodes = MixedNodes::new("pauses");
    mixed_nodes.client.call("set_jobs", json!({"jobs": {"one": nap(), "two": nap()}}));
    let ours = mixed_nodes.ours("ours", "");
    mixed_nodes.send("pause", &json!("one"));
    eventually("one is paused", || is_paused(&ours, "one"));
    assert!(!is_paused(&ours, "two"));
    eventually("Cronken would load it paused", || {
        mixed_nodes.client.call("jobs", json!({}))["one"]["job_state"]["paused"] == true
    });
    ours.stop();
    let ours = mixed_nodes.ours("ours", "");
    assert!(is_paused(&ours, "one"), "a pause is kept");
    mixed_nodes.send("resume", &json!("one"));
    eventually("one is resumed", || !is_paused(&ours, "one"));
    mixed_nodes.send("pause", &json!("all"));
    eventually("all are paused", || is_paused(&ours, "one") && is_paused(&ours, "two"));
    mixed_nodes.send("resume", &json!("all"));
    eventually("all are resumed", || !is_paused(&ours, "one") && !is_paused(&ours, "two"));
}

#[test]
fn trigger_and_kill_events_apply_once() {
    let mut mixed_nodes = MixedNodes::new("runs");
    let free = json!({"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": "true", "lock": false, "ttl": 10}});
    // Nodes ignore an event that repeats within half a second, so each job is triggered once.
    let jobs = json!({"terminated": nap(), "killed": nap(), "free": free, "last": nap()});
    mixed_nodes.client.call("set_jobs", json!({"jobs": jobs}));
    let nodes = [mixed_nodes.ours("first", ""), mixed_nodes.ours("second", "")];
    let ours = &nodes[0];
    for (job, action, signal) in [("terminated", "terminate_run", "SIGTERM"), ("killed", "kill_run", "SIGKILL")] {
        mixed_nodes.send("trigger", &json!(job));
        eventually("it runs", || ours.runs(job).first().is_some_and(|run| run["state"] == "running"));
        let run = ours.runs(job)[0]["id"].clone();
        mixed_nodes.send(action, &run);
        eventually("it has ended", || ours.runs(job)[0]["state"] == "failure");
        let found = &ours.runs(job)[0];
        assert_eq!((&found["id"], &found["signal"]), (&run, &json!(signal)), "{found:#}");
    }
    // This job has no lock, so only deduplication of the event prevents a second run.
    mixed_nodes.send("trigger", &json!("free"));
    mixed_nodes.send("trigger", &json!("last"));
    let is_begun = |job: &str| !ours.runs(job).is_empty();
    eventually("both jobs have started", || is_begun("free") && is_begun("last"));
    for job in ["terminated", "killed", "free", "last"] {
        assert_eq!(ours.runs(job).len(), 1, "{job}: an event applies once, although both nodes receive it");
    }
}

#[test]
fn add_remove_and_reload_events_change_jobs() {
    let mut mixed_nodes = MixedNodes::new("jobs");
    let ours = mixed_nodes.ours("ours", "");
    mixed_nodes.send("add", &json!({"job_name": "new", "job_def": never("echo new")}));
    eventually("it is there", || ours.job("new").is_some());
    eventually("Cronken knows it", || mixed_nodes.client.call("names", json!({})) == json!(["new"]));
    mixed_nodes.send("remove", &json!("new"));
    eventually("it is gone", || ours.job("new").is_none());
    assert_eq!(mixed_nodes.client.call("names", json!({})), json!(["new"]), "the definition stays");
    mixed_nodes.send("reload", &json!({}));
    eventually("it is there again", || ours.job("new").is_some());
}

#[test]
fn validate_event_writes_validation_errors() {
    let mut mixed_nodes = MixedNodes::new("validate");
    let broken = r#"{"cron_args": {"cronstring": "0 3 * * *"}, "job_args": {"cmd": "", "lock": true, "ttl": 9}}"#;
    mixed_nodes.client.call("put_raw", json!({"name": "broken", "text": broken}));
    mixed_nodes.client.call("put_raw", json!({"name": "nonsense", "text": "{"}));
    mixed_nodes.client.call("update_jobs", json!({"jobs": {"fine": never("true")}}));
    let ours = mixed_nodes.ours("ours", "");
    let validation_errors = |mixed_nodes: &mut MixedNodes, name: &str| {
        let text = mixed_nodes.client.call("raw_job", json!({"name": name}));
        let form: Option<Value> = serde_json::from_str(text.as_str().expect("there")).ok();
        form.and_then(|form| form["job_state"]["validation_errors"].as_str().map(str::to_owned))
    };
    // A node of Cronken holds the lock for validation.
    assert_eq!(mixed_nodes.client.call("hold", json!({"key": "__validation__", "ttl": 60})), true);
    mixed_nodes.send("validate", &json!([]));
    eventually("it is left to them", || ours.has_logged("foreign_jobs_unvalidated"));
    assert_eq!(validation_errors(&mut mixed_nodes, "broken"), None);
    mixed_nodes.client.call("free", json!({"key": "__validation__"}));
    mixed_nodes.send("validate", &json!(["broken", "fine", "nonsense", "absent"]));
    eventually("the errors are written", || validation_errors(&mut mixed_nodes, "broken").is_some());
    let others = (validation_errors(&mut mixed_nodes, "fine"), validation_errors(&mut mixed_nodes, "nonsense"));
    assert_eq!(others, (None, None));
}

#[test]
fn drain_event_drains_only_the_named_node() {
    let mut mixed_nodes = MixedNodes::new("drain");
    let ours = mixed_nodes.ours("ours", "");
    let is_draining = |ours: &Node| ours.json(&["nodes"])[0]["draining"] == true;
    mixed_nodes.send("pause", &json!({"no": "name"}));
    mixed_nodes.send("drain_nodes", &json!(["elsewhere"]));
    mixed_nodes.send("trigger", &json!(7));
    assert!(!is_draining(&ours));
    mixed_nodes.send("drain_nodes", &json!(["elsewhere", "ours"]));
    eventually("it drains", || is_draining(&ours));
}

#[test]
fn python_nodes_follow_our_events() {
    let mut mixed_nodes = MixedNodes::new("obeyed");
    // When a job that is never due is resumed, Cronken drops it and cannot reload jobs afterwards.
    let rare =
        json!({"cron_args": {"cronstring": "0 3 1 1 *"}, "job_args": {"cmd": "sleep 300", "lock": true, "ttl": 10}});
    mixed_nodes.client.call("set_jobs", json!({"jobs": {"one": rare}}));
    let theirs = mixed_nodes.python("theirs", RARELY);
    let ours = mixed_nodes.ours("ours", "");
    let has_logged = |text: &str| theirs.log_text().contains(text);
    ours.done(&["pause", "one"]);
    eventually("theirs pauses it", || has_logged("EVENT: Paused job one"));
    ours.done(&["resume", "one"]);
    eventually("theirs resumes it", || has_logged("EVENT: Resumed job one"));
    ours.done(&["add", "two", "0 3 * * *", "--", "echo", "hi"]);
    // Cronken logs this after it has loaded all jobs. The next change must come after that.
    const LOADED: &str = "EVENT: reloaded jobs";
    eventually("theirs loads it", || {
        theirs.log_text().split_once("loading job two").is_some_and(|(_, after)| after.contains(LOADED))
    });
    let loads = || theirs.log_text().matches(LOADED).count();
    let before = loads();
    ours.done(&["del", "two"]);
    eventually("theirs forgets it", || {
        loads() > before && mixed_nodes.client.call("names", json!({})) == json!(["one"])
    });
    // Both nodes receive the event, and the lock admits one of them. Ours is suspended, so theirs wins.
    ours.send(Signal::STOP);
    mixed_nodes.send("trigger", &json!("one"));
    eventually("theirs runs it", || active(&mut mixed_nodes).iter().any(|run| run["host"] == "theirs"));
    ours.send(Signal::CONT);
    let id = active(&mut mixed_nodes)[0]["id"].clone();
    // Cronken lists a run before it has started its process, and refuses to kill it in between.
    let refusals = || theirs.log_text().matches(&format!("Unknown run {}", id.as_str().expect("an id"))).count();
    let mut sent = 0;
    eventually("theirs kills it", || {
        if sent == refusals() {
            mixed_nodes.send("kill_run", &id);
            sent += 1;
        }
        active(&mut mixed_nodes).is_empty()
    });
    let page = mixed_nodes.client.call("job_page", json!({"name": "one"}));
    assert_eq!((&page["fail"][0]["id"], &page["fail"][0]["retcode"]), (&id, &json!(-9)), "{page}");
}

fn active(mixed_nodes: &mut MixedNodes) -> Vec<Value> {
    mixed_nodes.client.call("dashboard", json!({}))["active"].as_array().expect("runs").clone()
}
