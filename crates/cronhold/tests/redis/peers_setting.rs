//! Nodes and commands in a namespace for which another node or command has set `peers=cronken`.

use cronhold_daemon::clock::now;
use serde_json::{Value, json};

use crate::processes::eventually;
use crate::sandbox::Sandbox;

#[test]
fn peers_setting_of_namespace_applies_without_url_option() {
    let sandbox = Sandbox::new("company");
    let first = sandbox.start_at(&sandbox.server.url_with("peers=cronken"), "one", &[]);
    first.wait_until_ready();
    assert_eq!(first.logged("foreign_nodes_changed").len(), 0, "{}", first.log_text());
    let second = sandbox.up("two", &[]);
    second.wait_until_message("store_warning", "peers=cronken");
    let result = sandbox.at_store(&["add", "hello", "triggered", "true"]).exits(0);
    assert!(result.err.contains("note: nodes of Cronken run the same jobs"), "{result:?}");
    // Commands that only read print no note, and neither do commands whose URL has the option.
    sandbox.at_store(&["list"]).exits(0).omits("Cronken");
    let url = sandbox.server.url_with("peers=cronken");
    sandbox.run_command(&["--store", &url, "pause", "hello"]).exits(0).omits("Cronken");
    first.stop();
    second.stop();
}

/// The store contains a result of a Cronken node for a time in the future. Our node ignores it until a command sets
/// `peers=cronken`, and skips the occurrences from then on.
#[test]
fn running_node_applies_changed_peers_setting() {
    let sandbox = Sandbox::new("company-later");
    let node = sandbox.up("one", &[]);
    sandbox.done(&["add", "often", "--lock", "often", "@every 3s", "true"]);
    let theirs = format!("{}.000000", now().secs() + 3_600);
    let run = json!({ "job_name": "often", "start_time": theirs, "host": "draco", "status": "success", "retcode": 0 });
    sandbox.server.cli(&["HSET", "{cronken}:rundata", "aaaa", &run.to_string()]);
    sandbox.server.cli(&["ZADD", "{cronken}:results:often:success", &theirs, "aaaa"]);
    let count = |is_one: &dyn Fn(&Value) -> bool| {
        sandbox.json(&["runs", "often"]).as_array().map_or(0, |runs| runs.iter().filter(|run| is_one(run)).count())
    };
    eventually("it runs here", || count(&|run| run["state"] == "success") > 0);
    assert_eq!(count(&|run| run["state"] == "skipped"), 0);

    let url = sandbox.server.url_with("peers=cronken");
    sandbox.run_command(&["--store", &url, "add", "hello", "triggered", "true"]).exits(0).omits("note:");
    eventually("occurrences that ran on Cronken are skipped", || {
        count(&|run| run["state"] == "skipped" && run["reason"] == "ran on Cronken draco") > 1
    });
    node.wait_until_logged("foreign_nodes_changed", &[]);
    assert_eq!(node.logged("foreign_nodes_changed").len(), 1, "{}", node.log_text());

    let url = sandbox.server.url_with("peers=none");
    sandbox.run_command(&["--store", &url, "del", "hello"]).exits(0);
    let before = count(&|run| run["state"] == "success");
    eventually("it runs here again", || count(&|run| run["state"] == "success") > before);
    node.stop();
}

/// Python nodes run the shared definitions, so our nodes never rewrite definitions of other programs. Our jobs follow
/// the definitions and the `peers` setting.
#[test]
fn foreign_definitions_keep_their_text_and_follow_peers_setting() {
    let sandbox = Sandbox::new("company-dialect");
    let args = r#""job_args": {"cmd": "true", "lock": true, "ttl": 10}"#;
    let texts = [("wk", "0 0 * * 0"), ("both", "0 0 13 * 5"), ("daily", "@daily")]
        .map(|(name, text)| (name, format!(r#"{{"cron_args":  {{"cronstring": "{text}"}}, {args}}}"#)));
    texts.iter().for_each(|(name, text)| sandbox.define(name, text));
    let assert_kept = || {
        for (name, text) in &texts {
            assert_eq!(sandbox.server.cli(&["HGET", "{cronken}:jobs", name]), *text);
        }
    };
    let node = sandbox.up("one", &[]);
    node.wait_until_message("foreign_job_note", "shared job wk: ");
    sandbox.done(&["add", "--shell", "ours", "0 3 * * 1", "true"]);

    let [with, without] = ["peers=cronken", "peers=none"].map(|peers| sandbox.server.url_with(peers));
    sandbox.run_command(&["--store", &with, "add", "hello", "triggered", "true"]).exits(0);
    assert_kept();
    for name in ["wk", "both"] {
        node.wait_until_message(
            "foreign_job_reconciled",
            &format!("shared job {name} is read as Cronken's nodes read it from now on"),
        );
    }
    node.wait_until_message("foreign_job_reconciled", "means another time: At 00:00 on Monday");
    assert_kept();
    sandbox.run_command(&["--store", &without, "del", "hello"]).exits(0);
    for name in ["wk", "both"] {
        node.wait_until_message(
            "foreign_job_reconciled",
            &format!("shared job {name} is read as cron does from now on"),
        );
    }
    assert_kept();
    assert_eq!(node.log_text().matches("is read as").count(), 4, "{}", node.log_text());
    node.stop();

    // A node that was not running during the change does the same.
    let later = sandbox.start_at(&with, "two", &[]);
    later.wait_until_ready();
    for name in ["wk", "both"] {
        later.wait_until_message(
            "foreign_job_reconciled",
            &format!("shared job {name} is read as Cronken's nodes read it"),
        );
    }
    assert_kept();
    assert_eq!(sandbox.defined("ours").expect("there")["cron_args"]["cronstring"], "0 3 * * mon");
    later.stop();
}

/// Cronken has no global pause. Each definition shows the pause, and jobs that were paused before stay paused.
#[test]
fn global_pause_is_written_to_each_definition() {
    let sandbox = Sandbox::new("company-pause");
    let node = sandbox.up("one", &[]);
    for job in ["alone", "both"] {
        sandbox.done(&["add", job, "@daily", "true"]);
    }
    sandbox.done(&["pause", "both"]);
    let definition = |job: &str| -> Value {
        let text = sandbox.server.cli(&["HGET", "{cronken}:jobs", job]);
        serde_json::from_str(&text).unwrap_or_default()
    };
    let shows = |alone: bool, both: bool| {
        let is = |job: &str| definition(job)["job_state"]["paused"] == true;
        (is("alone"), is("both")) == (alone, both)
    };
    eventually("one is paused", || shows(false, true));
    for by_daemon in [false, true] {
        let run = |verb: &str| {
            if by_daemon {
                sandbox.run_command(&["--data", "one", verb, "all"]).exits(0)
            } else {
                sandbox.at_store(&[verb, "all"]).exits(0)
            }
        };
        run("pause");
        eventually("both are paused", || shows(true, true));
        let mut set: Vec<String> =
            sandbox.server.cli(&["SMEMBERS", "{cronken}:jobs:paused"]).lines().map(str::to_owned).collect();
        set.sort();
        assert_eq!(set, ["alone", "both"]);
        // Another program changes the command of a job and leaves its pause unchanged.
        let mut changed = definition("alone");
        changed["job_args"]["cmd"] = format!("echo {by_daemon}").into();
        sandbox.server.cli(&["HSET", "{cronken}:jobs", "alone", &changed.to_string()]);
        sandbox.server.cli(&[
            "PUBLISH",
            "{cronken}:__events__",
            &format!(r#"{{"action":"reload","args":{{}},"n":{by_daemon}}}"#),
        ]);
        let command = format!("echo {by_daemon}");
        eventually("the change is adopted", || sandbox.done(&["show", "alone", "-o", "json"]).contains(&command));
        run("resume");
        eventually("one is resumed", || shows(false, true));
        assert_eq!(sandbox.server.cli(&["SMEMBERS", "{cronken}:jobs:paused"]), "both");
    }
    node.stop();
}
