//! Definitions and events of other programs. `redis-cli` writes them, so no code of ours is involved.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::processes::eventually;
use crate::site::{Node, Site};

/// A definition that is never due.
pub(crate) const NEVER: &str =
    r#"{"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": "echo ran", "lock": true, "ttl": 10}}"#;

/// Number of events that were sent.
static SENT: AtomicU64 = AtomicU64::new(0);

impl Site {
    /// Writes a definition, as another program does.
    pub(crate) fn define(&self, name: &str, text: &str) {
        self.server.cli(&["hset", "{cronken}:jobs", name, text]);
    }

    /// The stored definition of a job.
    pub(crate) fn defined(&self, name: &str) -> Option<Value> {
        let text = self.server.cli(&["hget", "{cronken}:jobs", name]);
        serde_json::from_str(&text).ok()
    }

    /// Sends an event, as another program does.
    pub(crate) fn event(&self, action: &str, args: &Value) {
        // Nodes ignore an event that repeats within half a second, so each one has its own number.
        let number = SENT.fetch_add(1, Ordering::Relaxed);
        let text = json!({"action": action, "args": args, "number": number}).to_string();
        self.server.cli(&["publish", "{cronken}:__events__", &text]);
    }

    pub(crate) fn has_job(&self, name: &str) -> bool {
        self.json(&["list"]).as_array().expect("a list").iter().any(|job| job["id"] == name)
    }

    fn is_paused(&self, name: &str) -> bool {
        self.json(&["list"]).as_array().expect("a list").iter().any(|job| job["id"] == name && job["paused"] == true)
    }

    fn run_count(&self, name: &str) -> usize {
        self.json(&["runs", name]).as_array().map_or(0, Vec::len)
    }
}

fn two_nodes(site: &Site) -> [Node; 2] {
    [site.up("one", &[]), site.up("two", &[])]
}

#[test]
fn definitions_and_jobs_are_reconciled() {
    let site = Site::new("peers-definitions");
    site.define("there", NEVER);
    let [one, two] = two_nodes(&site);
    assert!(site.has_job("there"), "definitions are adopted before the node is ready: {}", one.log_text());
    site.define("late", NEVER);
    site.define("wrong", r#"{"cron_args": {}}"#);
    site.event("reload", &json!({}));
    eventually("the new definition is a job", || site.has_job("late"));
    let is_logged = |node: &Node| {
        let is_about =
            |line: &Value| line["message"].as_str().is_some_and(|message| message.contains("shared job wrong: "));
        node.logged("foreign_job_reconciled").iter().any(is_about)
    };
    eventually("the mistake is logged", || is_logged(&one) || is_logged(&two));

    site.done(&["add", "ours", "@daily", "true"]);
    eventually("our job is defined", || site.defined("ours").is_some());
    assert_eq!(
        site.defined("ours").expect("there")["cron_args"]["cronstring"],
        "@never",
        "Cronken cannot express an argument list"
    );
    site.done(&["add", "--shell", "simple", "0 3 * * 1", "echo hi"]);
    let simple = site.defined("simple").expect("the verb writes it");
    assert_eq!(simple["cron_args"], json!({"cronstring": "0 3 * * mon"}));
    assert_eq!(simple["job_args"], json!({"cmd": "echo hi", "lock": false, "ttl": 10}));
    site.done(&["pause", "there"]);
    eventually("the pause is written", || {
        site.defined("there").is_some_and(|form| form["job_state"]["paused"] == true)
    });
    site.done(&["del", "simple"]);
    eventually("the definition is removed with its job", || site.defined("simple").is_none());
    site.server.cli(&["hdel", "{cronken}:jobs", "late"]);
    site.event("reload", &json!({}));
    eventually("the job is removed with its definition", || !site.has_job("late"));
}

#[test]
fn events_take_effect_once() {
    let site = Site::new("peers-events");
    let [_one, _two] = two_nodes(&site);
    site.event("add", &json!({"job_name": "a", "job_def": serde_json::from_str::<Value>(NEVER).expect("JSON")}));
    eventually("it is added", || site.has_job("a"));
    site.event("trigger", &json!("a"));
    eventually("it has run", || site.json(&["runs", "a"])[0]["state"] == "success");
    site.event("pause", &json!("a"));
    eventually("it is paused", || site.is_paused("a"));
    site.event("resume", &json!("a"));
    eventually("it is resumed", || !site.is_paused("a"));
    assert_eq!(site.run_count("a"), 1, "both nodes received the event, and one run was created");

    site.define("sleep", &NEVER.replace("echo ran", "exec sleep 1000"));
    site.event("reload", &json!({}));
    eventually("it is a job", || site.has_job("sleep"));
    for (action, signal) in [("terminate_run", "SIGTERM"), ("kill_run", "killed")] {
        site.event("trigger", &json!("sleep"));
        eventually("it runs", || site.json(&["runs", "sleep"])[0]["state"] == "running");
        let run = site.json(&["runs", "sleep"])[0]["id"].as_str().expect("an id").to_owned();
        site.event(action, &json!(run));
        eventually("it has ended", || site.json(&["runs", "sleep"])[0]["state"] == "failure");
        let reason = site.json(&["runs", "sleep"])[0]["reason"].to_string();
        assert!(reason.contains(signal), "{action}: {reason}");
    }
    site.event("remove", &json!("a"));
    eventually("it is removed", || !site.has_job("a"));
    assert!(site.defined("a").is_some(), "its definition stays");
    site.event("reload", &json!({}));
    eventually("it is back", || site.has_job("a"));
    site.define("wrong", r#"{"cron_args": {}}"#);
    site.event("validate", &json!([]));
    let is_noted = |form: Value| form["job_state"]["validation_errors"].is_string();
    eventually("the validation errors are written", || site.defined("wrong").is_some_and(is_noted));
    site.event("drain_nodes", &json!(["two"]));
    let drains = |node: &Value| node["name"] == "two" && node["draining"] == true;
    eventually("one drains", || site.json(&["nodes"]).as_array().expect("a list").iter().any(drains));
}

/// A pause that was sent as an event survives a restart, and a global pause applies to jobs that are added later.
#[test]
fn pauses_survive_a_restart() {
    let site = Site::new("peers-pauses");
    let mut node = site.up("one", &[]);
    site.define("a", NEVER);
    site.event("reload", &json!({}));
    eventually("it is a job", || site.has_job("a"));
    site.event("pause", &json!("all"));
    site.event("pause", &json!("a"));
    eventually("the pause is written", || site.defined("a").is_some_and(|form| form["job_state"]["paused"] == true));
    node.kill();
    node.start_again();
    site.define("b", NEVER);
    eventually("the later job is there", || {
        site.event("reload", &json!({}));
        site.has_job("b")
    });
    assert!(site.is_paused("a") && site.is_paused("b"));
    site.event("resume", &json!("all"));
    eventually("all are resumed", || !site.is_paused("a") && !site.is_paused("b"));
    node.wait_until_ready();
}
