//! `rename`: a job keeps its history under another name.

use super::sandbox::Sandbox;

const JOBS: &[(&str, &str)] = &[("file", "program: ['true']\n")];

/// More finished runs than one unit moves.
const MANY: usize = 230;

#[test]
fn rename() {
    let sandbox = Sandbox::up("rename", JOBS);
    sandbox.done(&["add", "old", "triggered", "--", "true"]);
    sandbox.put(
        "after.yaml",
        "program: ['true']\nconditions: [{after: {job: old, within: 1h}}]\non: {success: [{run: old}]}\n",
    );
    sandbox.done(&["add", "long", "triggered", "--", "sleep", "600"]);
    sandbox.run("old");
    let after = sandbox.path("after.yaml").display().to_string();
    sandbox.done(&["add", "after", "-f", &after]);
    sandbox.done(&["run", "long"]);
    sandbox.wait_for("long#1", "running");
    sandbox.done(&["pause", "old", "--why", "moving"]);
    let commands: &[&[&str]] = &[
        &["rename", "old", "team/new"],
        &["runs", "team/new"],
        &["list", "team/new"],
        &["rename", "old", "other"],
        &["rename", "team/new", "long"],
        &["rename", "file", "other"],
        &["rename", "long", "longer"],
        &["rename", "team/new", "Not a name/"],
        &["rename", "team/new", "new", "-o", "json"],
        &["rename", "new", "old"],
    ];
    insta::assert_snapshot!(sandbox.transcript(commands));
    let run = sandbox.json(&["show", "old#1"]);
    assert_eq!(run["state"], "success");
    sandbox.done(&["resume", "old"]);
    sandbox.done(&["run", "old", "--wait"]);
    assert_eq!(sandbox.json(&["runs", "old"]).as_array().map(Vec::len), Some(2), "numbers go on");
    sandbox.done(&["stop", "long"]);
}

/// The request moves all runs, in several units, and the outcomes with them: a run that waits for one starts.
#[test]
fn rename_moves_many_runs_and_outcomes() {
    let sandbox = Sandbox::up("rename-many", &[]);
    sandbox.put("old.yaml", "program: {noop: true}\nparams: [x]\noverlap: allow\n");
    let file = sandbox.path("old.yaml").display().to_string();
    sandbox.done(&["add", "old", "-f", &file]);
    for number in 0..MANY {
        sandbox.done(&["run", "old", &format!("x={number}")]);
    }
    sandbox.wait_for(&format!("old#{MANY}"), "success");
    let renamed = sandbox.json(&["rename", "old", "new"]);
    assert_eq!((&renamed["job"], &renamed["moved"]), (&"new".into(), &(2 * MANY).into()), "runs and outcomes");
    assert_eq!(renamed["named_by"], serde_json::json!([]));
    let limit = MANY.to_string();
    assert_eq!(sandbox.json(&["runs", "new", "--limit", &limit]).as_array().map(Vec::len), Some(MANY));
    for number in [1, MANY / 2, MANY] {
        assert_eq!(sandbox.json(&["show", &format!("new#{number}")])["job"], "new");
    }
    sandbox.put("down.yaml", "program: ['true']\nparams: [x]\nconditions: [{after: new}]\n");
    let down = sandbox.path("down.yaml").display().to_string();
    sandbox.done(&["add", "down", "-f", &down]);
    sandbox.done(&["run", "down", "x=7"]);
    sandbox.wait_for("down#1", "success");
}
