//! Nodes and commands in a namespace that is said to be shared with Cronken's nodes, by somebody else.

use cronhold_daemon::clock::now;
use serde_json::{Value, json};

use crate::processes::eventually;
use crate::site::Site;

#[test]
fn peers_setting_of_namespace_applies_without_url_option() {
    let site = Site::new("company");
    let first = site.start_at(&site.server.url_with("peers=cronken"), "one", &[]);
    first.wait_until_ready();
    assert_eq!(first.logged("foreign_nodes_changed").len(), 0, "{}", first.said());
    let second = site.up("two", &[]);
    second.wait_until_message("store_warning", "peers=cronken");
    let told = site.at_store(&["add", "hello", "triggered", "true"]).exits(0);
    assert!(told.err.contains("note: nodes of Cronken run the same jobs"), "{told:?}");
    // Who only looks is not bothered, and who says it knows it.
    site.at_store(&["list"]).exits(0).hides("Cronken");
    let url = site.server.url_with("peers=cronken");
    site.give(&["--store", &url, "pause", "hello"]).exits(0).hides("Cronken");
    first.stop();
    second.stop();
}

/// A node of Cronken claims to have run a job for a long time to come. That is nothing to a node that knows of none, and
/// something from the moment on in which somebody else says that there are some.
#[test]
fn running_node_applies_changed_peers_setting() {
    let site = Site::new("company-later");
    let node = site.up("one", &[]);
    site.done(&["add", "often", "--lock", "often", "@every 3s", "true"]);
    let theirs = format!("{}.000000", now().secs() + 3_600);
    let run = json!({ "job_name": "often", "start_time": theirs, "host": "draco", "status": "success", "retcode": 0 });
    site.server.cli(&["HSET", "{cronken}:rundata", "aaaa", &run.to_string()]);
    site.server.cli(&["ZADD", "{cronken}:results:often:success", &theirs, "aaaa"]);
    let count = |is_one: &dyn Fn(&Value) -> bool| {
        site.json(&["runs", "often"]).as_array().map_or(0, |runs| runs.iter().filter(|run| is_one(run)).count())
    };
    eventually("it runs here", || count(&|run| run["state"] == "success") > 0);
    assert_eq!(count(&|run| run["state"] == "skipped"), 0);

    let url = site.server.url_with("peers=cronken");
    site.give(&["--store", &url, "add", "hello", "triggered", "true"]).exits(0).hides("note:");
    eventually("what ran there is skipped here", || {
        count(&|run| run["state"] == "skipped" && run["reason"] == "ran on Cronken draco") > 1
    });
    node.wait_until_logged("foreign_nodes_changed", &[]);
    assert_eq!(node.logged("foreign_nodes_changed").len(), 1, "{}", node.said());

    let url = site.server.url_with("peers=none");
    site.give(&["--store", &url, "del", "hello"]).exits(0);
    let before = count(&|run| run["state"] == "success");
    eventually("it runs here again", || count(&|run| run["state"] == "success") > before);
    node.stop();
}

/// Python nodes run what stands there: whoever comes and goes, definitions of others stay as they wrote them, and our jobs
/// follow.
#[test]
fn foreign_definitions_keep_their_text_and_follow_peers_setting() {
    let site = Site::new("company-dialect");
    let args = r#""job_args": {"cmd": "true", "lock": true, "ttl": 10}"#;
    let texts = [("wk", "0 0 * * 0"), ("both", "0 0 13 * 5"), ("daily", "@daily")]
        .map(|(name, text)| (name, format!(r#"{{"cron_args":  {{"cronstring": "{text}"}}, {args}}}"#)));
    texts.iter().for_each(|(name, text)| site.define(name, text));
    let assert_kept = || {
        for (name, text) in &texts {
            assert_eq!(site.server.cli(&["HGET", "{cronken}:jobs", name]), *text);
        }
    };
    let node = site.up("one", &[]);
    node.wait_until_message("foreign_job_note", "shared job wk: ");
    site.done(&["add", "--shell", "ours", "0 3 * * 1", "true"]);

    let [with, without] = ["peers=cronken", "peers=none"].map(|peers| site.server.url_with(peers));
    site.give(&["--store", &with, "add", "hello", "triggered", "true"]).exits(0);
    assert_kept();
    for name in ["wk", "both"] {
        node.wait_until_message(
            "foreign_job_reconciled",
            &format!("shared job {name} is read as Cronken's nodes read it from now on"),
        );
    }
    node.wait_until_message("foreign_job_reconciled", "means another time: At 00:00 on Monday");
    assert_kept();
    site.give(&["--store", &without, "del", "hello"]).exits(0);
    for name in ["wk", "both"] {
        node.wait_until_message(
            "foreign_job_reconciled",
            &format!("shared job {name} is read as cron does from now on"),
        );
    }
    assert_kept();
    assert_eq!(node.said().matches("is read as").count(), 4, "{}", node.said());
    node.stop();

    // The same for one that was not there when it changed.
    let later = site.start_at(&with, "two", &[]);
    later.wait_until_ready();
    for name in ["wk", "both"] {
        later.wait_until_message(
            "foreign_job_reconciled",
            &format!("shared job {name} is read as Cronken's nodes read it"),
        );
    }
    assert_kept();
    assert_eq!(site.defined("ours").expect("there")["cron_args"]["cronstring"], "0 3 * * mon");
    later.stop();
}

/// Cronken has no pause of everything: each job is shown as paused, and those that were so before stay so.
#[test]
fn global_pause_is_written_to_each_definition() {
    let site = Site::new("company-pause");
    let node = site.up("one", &[]);
    for job in ["alone", "both"] {
        site.done(&["add", job, "@daily", "true"]);
    }
    site.done(&["pause", "both"]);
    let definition = |job: &str| -> Value {
        let text = site.server.cli(&["HGET", "{cronken}:jobs", job]);
        serde_json::from_str(&text).unwrap_or_default()
    };
    let shows = |alone: bool, both: bool| {
        let is = |job: &str| definition(job)["job_state"]["paused"] == true;
        (is("alone"), is("both")) == (alone, both)
    };
    eventually("one is paused", || shows(false, true));
    for by_daemon in [false, true] {
        let give = |verb: &str| {
            if by_daemon {
                site.give(&["--data", "one", verb, "all"]).exits(0)
            } else {
                site.at_store(&[verb, "all"]).exits(0)
            }
        };
        give("pause");
        eventually("both are paused", || shows(true, true));
        let mut set: Vec<String> =
            site.server.cli(&["SMEMBERS", "{cronken}:jobs:paused"]).lines().map(str::to_owned).collect();
        set.sort();
        assert_eq!(set, ["alone", "both"]);
        // Another program changes something else of a job, and leaves its pause as it found it.
        let mut changed = definition("alone");
        changed["job_args"]["cmd"] = format!("echo {by_daemon}").into();
        site.server.cli(&["HSET", "{cronken}:jobs", "alone", &changed.to_string()]);
        site.server.cli(&[
            "PUBLISH",
            "{cronken}:__events__",
            &format!(r#"{{"action":"reload","args":{{}},"n":{by_daemon}}}"#),
        ]);
        let words = format!("echo {by_daemon}");
        eventually("it is taken up", || site.done(&["show", "alone", "-o", "json"]).contains(&words));
        give("resume");
        eventually("one goes on", || shows(false, true));
        assert_eq!(site.server.cli(&["SMEMBERS", "{cronken}:jobs:paused"]), "both");
    }
    node.stop();
}
