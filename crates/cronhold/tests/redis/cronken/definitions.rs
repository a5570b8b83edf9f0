//! Our nodes adopt definitions that Cronken's own code has written, and Cronken can read ours.

use serde_json::json;

use super::mixed_nodes::MixedNodes;
use crate::processes::eventually;

#[test]
fn jobs_written_by_cronken_are_adopted() {
    let mut mixed_nodes = MixedNodes::new("forms");
    let job =
        |cmd: &str| json!({"cron_args": {"cronstring": "0 3 * * *"}, "job_args": {"cmd": cmd, "lock": true, "ttl": 9}});
    mixed_nodes.client.call("set_jobs", json!({"jobs": {"kept": job("echo 1"), "gone": job("echo 2")}}));
    let ours = mixed_nodes.ours("ours", "");
    eventually("both are there", || ours.job("kept").is_some() && ours.job("gone").is_some());
    assert_eq!(ours.job("kept").expect("there")["source"], "foreign");
    mixed_nodes.client.call("update_jobs", json!({"jobs": {"kept": job("echo changed"), "late": job("echo 3")}}));
    mixed_nodes.client.call("drop_job", json!({"name": "gone"}));
    mixed_nodes.send("reload", &json!({}));
    eventually("the changes are adopted", || ours.job("late").is_some() && ours.job("gone").is_none());
    let shown = ours.json(&["show", "kept"]);
    assert_eq!(shown["definition"]["program"], "echo changed", "{shown:#}");
    let mut jobs = mixed_nodes.client.call("jobs", json!({}));
    let names: Vec<&String> = jobs.as_object_mut().expect("jobs").keys().collect();
    assert_eq!(names, ["kept", "late"]);
}

#[test]
fn job_that_cronken_cannot_express_is_never_due_there() {
    let mut mixed_nodes = MixedNodes::new("never");
    let ours = mixed_nodes.ours("ours", "");
    ours.done(&["add", "plain", "*/5 3 * * 1-5", "--", "echo", "hi"]);
    let file = mixed_nodes.path("rich.yaml");
    let rich = "program: echo rich\nschedule: [{cron: '0 3 * * *'}, {every: 90m}]\nretry: {attempts: 3}\n";
    std::fs::write(&file, rich).expect("written");
    ours.done(&["add", "rich", "--file", &file.display().to_string()]);
    eventually("both are there", || mixed_nodes.client.call("names", json!({})) == json!(["plain", "rich"]));
    let jobs = mixed_nodes.client.call("jobs", json!({}));
    assert_eq!(jobs["rich"]["cron_args"], json!({"cronstring": "@never"}), "{jobs:#}");
    ours.done(&["del", "rich"]);
    eventually("it is gone", || mixed_nodes.client.call("names", json!({})) == json!(["plain"]));
}
