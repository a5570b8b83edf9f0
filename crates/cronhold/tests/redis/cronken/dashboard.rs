//! Runs of ours as Cronken's own code and a dashboard on Cronken's keys show them, in each state.

use serde_json::{Value, json};

use super::mixed_nodes::MixedNodes;
use crate::processes::eventually;

#[test]
fn cronken_dashboard_shows_our_runs() {
    let mut mixed_nodes = MixedNodes::new("sight");
    let gate = mixed_nodes.path("gate");
    let wait = format!("echo one; echo one; echo two; until [ -e {} ]; do sleep 0.05; done; echo end", gate.display());
    mixed_nodes.client.call(
        "set_jobs",
        json!({"jobs": {
            "good": {"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": wait, "lock": true, "ttl": 10}},
            "bad": {"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": "echo no; exit 3", "lock": false, "ttl": 10}},
            "shot": {"cron_args": {"cronstring": "@never"}, "job_args": {"cmd": "kill -9 $$", "lock": false, "ttl": 10}},
        }}),
    );
    let ours = mixed_nodes.ours("ours", "&heartbeat=1s");
    ours.done(&["run", "good"]);
    eventually("it is shown", || !active(&mut mixed_nodes).is_empty());
    let shown = active(&mut mixed_nodes);
    assert_eq!(shown.len(), 1);
    let run = shown[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(shown_fields(&shown[0]), json!(["good", "ours", "running", null, null]));
    eventually("its lines are there", || {
        mixed_nodes.client.call("output", json!({"run": run})) == json!(["one\n", "one\n", "two\n"])
    });
    eventually("our node is shown", || hosts(&mut mixed_nodes) == ["ours"]);

    std::fs::write(gate, "").expect("written");
    eventually("it is over", || active(&mut mixed_nodes).is_empty());
    ours.done(&["run", "bad"]);
    ours.done(&["run", "shot"]);
    eventually("they are over", || results(&mut mixed_nodes, "fail").len() == 2);
    let success = results(&mut mixed_nodes, "success");
    assert_eq!(
        success.iter().map(shown_fields).collect::<Vec<_>>(),
        [json!(["good", "ours", "success", 0, "one\none\ntwo\nend\n"])]
    );
    assert_eq!(success[0]["id"], run.as_str());
    let mut fail: Vec<String> =
        results(&mut mixed_nodes, "fail").iter().map(|run| shown_fields(run).to_string()).collect();
    fail.sort();
    assert_eq!(fail, [r#"["bad","ours","fail",3,"no\n"]"#, r#"["shot","ours","fail",-9,""]"#]);
    for run in success {
        let (ended, score) = (run["ended"].as_f64().expect("a time"), run["score"].as_f64().expect("a time"));
        assert!((ended - score).abs() < 0.001, "a result is sorted by its end: {run}");
    }
    let page = mixed_nodes.client.call("job_page", json!({"name": "bad"}));
    assert_eq!(shown_fields(&page["fail"][0]), json!(["bad", "ours", "fail", 3, "no\n"]));
    assert_eq!(page["success"], json!([]));
}

/// The shown fields of a run, without ids and times.
fn shown_fields(run: &Value) -> Value {
    json!([run["job"], run["host"], run["status"], run["retcode"], run["output"]])
}

fn active(mixed_nodes: &mut MixedNodes) -> Vec<Value> {
    results(mixed_nodes, "active")
}

fn results(mixed_nodes: &mut MixedNodes, part: &str) -> Vec<Value> {
    mixed_nodes.client.call("dashboard", json!({}))[part].as_array().expect("runs").clone()
}

fn hosts(mixed_nodes: &mut MixedNodes) -> Vec<String> {
    let instances = mixed_nodes.client.call("instances", json!({}));
    let hosts = instances.as_array().expect("instances").iter().filter_map(|one| one["host"].as_str());
    hosts.map(str::to_owned).collect()
}
