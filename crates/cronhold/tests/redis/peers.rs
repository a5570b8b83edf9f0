//! Definitions and events of other programs. `redis-cli` writes them, so no code of ours is involved.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::processes::eventually;
use crate::sandbox::{Node, Sandbox};

/// A definition that is never due.
pub(crate) const NEVER: &str =
    r#"{"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": "echo ran", "lock": true, "ttl": 10}}"#;

impl Sandbox {
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
        let text = json!({"action": action, "args": args}).to_string();
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

fn two_nodes(sandbox: &Sandbox) -> [Node; 2] {
    [sandbox.up("one", &[]), sandbox.up("two", &[])]
}

#[test]
fn definitions_and_jobs_are_reconciled() {
    let sandbox = Sandbox::new("peers-definitions");
    sandbox.define("there", NEVER);
    let [one, two] = two_nodes(&sandbox);
    assert!(sandbox.has_job("there"), "definitions are adopted before the node is ready: {}", one.log_text());
    sandbox.define("late", NEVER);
    sandbox.define("wrong", r#"{"cron_args": {}}"#);
    sandbox.event("reload", &json!({}));
    eventually("the new definition is a job", || sandbox.has_job("late"));
    let is_logged = |node: &Node| {
        let is_about =
            |line: &Value| line["message"].as_str().is_some_and(|message| message.contains("shared job wrong: "));
        node.logged("foreign_job_reconciled").iter().any(is_about)
    };
    eventually("the mistake is logged", || is_logged(&one) || is_logged(&two));

    sandbox.done(&["add", "ours", "@daily", "true"]);
    eventually("our job is defined", || sandbox.defined("ours").is_some());
    assert_eq!(
        sandbox.defined("ours").expect("there")["cron_args"]["cronstring"],
        "@never",
        "Cronken cannot express an argument list"
    );
    sandbox.done(&["add", "--shell", "simple", "0 3 * * 1", "echo hi"]);
    let simple = sandbox.defined("simple").expect("the verb writes it");
    assert_eq!(simple["cron_args"], json!({"cronstring": "0 3 * * mon"}));
    assert_eq!(simple["job_args"], json!({"cmd": "echo hi", "lock": false, "ttl": 10}));
    sandbox.done(&["pause", "there"]);
    eventually("the pause is written", || {
        sandbox.defined("there").is_some_and(|form| form["job_state"]["paused"] == true)
    });
    sandbox.done(&["del", "simple"]);
    eventually("the definition is removed with its job", || sandbox.defined("simple").is_none());
    sandbox.server.cli(&["hdel", "{cronken}:jobs", "late"]);
    sandbox.event("reload", &json!({}));
    eventually("the job is removed with its definition", || !sandbox.has_job("late"));
}

#[test]
fn events_take_effect_once() {
    let sandbox = Sandbox::new("peers-events");
    let [_one, _two] = two_nodes(&sandbox);
    sandbox.event("add", &json!({"job_name": "a", "job_def": serde_json::from_str::<Value>(NEVER).expect("JSON")}));
    eventually("it is added", || sandbox.has_job("a"));
    sandbox.event("trigger", &json!("a"));
    eventually("it has run", || sandbox.json(&["runs", "a"])[0]["state"] == "success");
    sandbox.event("pause", &json!("a"));
    eventually("it is paused", || sandbox.is_paused("a"));
    sandbox.event("resume", &json!("a"));
    eventually("it is resumed", || !sandbox.is_paused("a"));
    assert_eq!(sandbox.run_count("a"), 1, "both nodes received the event, and one run was created");

    sandbox.define("sleep", &NEVER.replace("echo ran", "exec sleep 1000"));
    sandbox.event("reload", &json!({}));
    eventually("it is a job", || sandbox.has_job("sleep"));
    for (action, signal) in [("terminate_run", "SIGTERM"), ("kill_run", "killed")] {
        sandbox.event("trigger", &json!("sleep"));
        eventually("it runs", || sandbox.json(&["runs", "sleep"])[0]["state"] == "running");
        let run = sandbox.json(&["runs", "sleep"])[0]["id"].as_str().expect("an id").to_owned();
        sandbox.event(action, &json!(run));
        eventually("it has ended", || sandbox.json(&["runs", "sleep"])[0]["state"] == "failure");
        let reason = sandbox.json(&["runs", "sleep"])[0]["reason"].to_string();
        assert!(reason.contains(signal), "{action}: {reason}");
    }
    sandbox.event("remove", &json!("a"));
    eventually("it is removed", || !sandbox.has_job("a"));
    assert!(sandbox.defined("a").is_some(), "its definition stays");
    sandbox.event("reload", &json!({}));
    eventually("it is back", || sandbox.has_job("a"));
    sandbox.define("wrong", r#"{"cron_args": {}}"#);
    sandbox.event("validate", &json!([]));
    let is_noted = |form: Value| form["job_state"]["validation_errors"].is_string();
    eventually("the validation errors are written", || sandbox.defined("wrong").is_some_and(is_noted));
    sandbox.event("drain_nodes", &json!(["two"]));
    let drains = |node: &Value| node["name"] == "two" && node["draining"] == true;
    eventually("one drains", || sandbox.json(&["nodes"]).as_array().expect("a list").iter().any(drains));
}

/// One of the nodes stands still while the events are sent and handled, and receives all of them afterwards.
#[test]
fn thousand_events_at_once_take_effect_once_each() {
    let sandbox = Sandbox::new("peers-burst");
    sandbox.put("jobs/j.yaml", "program: {noop: 0s}\noverlap: allow\n");
    let [one, two] = two_nodes(&sandbox);
    let three = sandbox.up("three", &["--jobs", "jobs"]);
    eventually("it is a job", || sandbox.has_job("j"));
    let number = || sandbox.json(&["runs", "j"])[0]["number"].as_u64().unwrap_or(0);
    let burst = "for _ = 1, 500 do redis.call('PUBLISH', KEYS[1], ARGV[1]) end";
    let trigger = json!({"action": "trigger", "args": "j"}).to_string();
    let send = || sandbox.server.cli(&["eval", burst, "1", "{cronken}:__events__", &trigger]);
    send();
    eventually("all have taken effect", || number() >= 500);
    two.send(Signal::STOP);
    send();
    eventually("all have taken effect without the node that stands still", || number() >= 1_000);
    two.send(Signal::CONT);
    // The node handles events in order, so it has handled all of them when this one takes effect.
    drop((one, three));
    sandbox.event("pause", &json!("j"));
    eventually("it has handled the last event", || sandbox.is_paused("j"));
    assert_eq!(number(), 1_000);
}

/// A pause that was sent as an event survives a restart, and a global pause applies to jobs that are added later.
#[test]
fn pauses_survive_a_restart() {
    let sandbox = Sandbox::new("peers-pauses");
    let mut node = sandbox.up("one", &[]);
    sandbox.define("a", NEVER);
    sandbox.event("reload", &json!({}));
    eventually("it is a job", || sandbox.has_job("a"));
    sandbox.event("pause", &json!("all"));
    sandbox.event("pause", &json!("a"));
    eventually("the pause is written", || sandbox.defined("a").is_some_and(|form| form["job_state"]["paused"] == true));
    node.kill();
    node.start_again();
    sandbox.define("b", NEVER);
    eventually("the later job is there", || {
        sandbox.event("reload", &json!({}));
        sandbox.has_job("b")
    });
    assert!(sandbox.is_paused("a") && sandbox.is_paused("b"));
    sandbox.event("resume", &json!("all"));
    eventually("all are resumed", || !sandbox.is_paused("a") && !sandbox.is_paused("b"));
    node.wait_until_ready();
}
