//! Commands about tasks on Redis without a daemon, and how they find it.

use crate::processes::eventually;
use crate::sandbox::{CommandOutput, Sandbox};
use crate::task_stories::WorkerChild;

/// A worker in shell that writes what it gets, plus one.
const NEXT: &str = r#"jq -c '.in.in.items[] | {"take":{"port":"in"}}, {"write":{"port":"out","data":(. + 1)}}'"#;

/// Runs a command with SideJob's variables, and without those of Cronhold.
fn with_sidejob(sandbox: &Sandbox, variables: &[(&str, &str)], args: &[&str]) -> CommandOutput {
    let mut command = sandbox.command(args);
    command.env_remove("CRONHOLD_DATA").envs(variables.iter().copied());
    CommandOutput::new(args, &command.output().expect("the binary starts"))
}

#[test]
fn task_verbs_use_the_store_without_a_daemon() {
    let sandbox = Sandbox::new("task-verbs");
    sandbox.at_store(&["task", "queue", "testq", "Next"]).exits(1).prints("is not registered");
    let url = sandbox.server.url();
    let binary = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command.env_remove("CRONHOLD_DATA").env("SIDEJOB_URL", &url);
        command
    };
    let options = ["--each", "--class", "Next"];
    let mut worker = WorkerChild::start(binary, &sandbox.path("worker.log"), &options, &["sh", "-c", NEXT]);
    eventually("the class is registered", || sandbox.done(&["queues"]).contains("Next"));
    assert_eq!(sandbox.done(&["workers", "-o", "json"]).matches("testq").count(), 1);
    assert_eq!(sandbox.done(&["task", "queue", "testq", "Next", "--alias", "next", "--in", "in=5"]), "1\n");
    let has_status = |status: &str| sandbox.done(&["task", "show", "next"]).contains(&format!("task 1 {status}"));
    eventually("the step is made", || has_status("completed"));
    assert_eq!(sandbox.done(&["task", "read", "next", "out", "--out"]), "6\n");
    sandbox.at_store(&["task", "read", "next", "out", "--out"]).exits(1);
    sandbox.done(&["task", "port", "next", "in", "--channel", "/numbers"]);
    sandbox.done(&["channel", "publish", "/numbers", "7"]);
    eventually("the message is processed", || sandbox.at_store(&["task", "read", "next", "out", "--out"]).out == "8\n");
    assert!(sandbox.done(&["task", "list"]).contains("Next"));
    assert!(sandbox.done(&["task", "tree", "1"]).contains("1 Next"));
    worker.kill();
}

#[test]
fn variables_of_sidejob_name_the_store_of_tasks() {
    let sandbox = Sandbox::new("sidejob-variables");
    let url = sandbox.server.url();
    let closed = "redis://127.0.0.1:1?timeout=1s";
    let sidejob = [("SIDEJOB_URL", url.as_str()), ("SIDEJOB_HOST", "127.0.0.1:1")];
    for args in [&["task", "list"][..], &["queues"], &["workers"], &["channel", "list"]] {
        with_sidejob(&sandbox, &sidejob, args).exits(0);
    }
    let host = url.trim_start_matches("redis://").trim_end_matches('/');
    with_sidejob(&sandbox, &[("SIDEJOB_HOST", host)], &["task", "list"]).exits(0);
    // Everything of Cronhold itself takes precedence.
    with_sidejob(&sandbox, &sidejob, &["--store", "sqlite:a.db", "task", "list"]).exits(2).prints("--store");
    with_sidejob(&sandbox, &sidejob, &["--data", "nowhere", "task", "list"]).exits(3).prints("no daemon is running");
    with_sidejob(&sandbox, &[sidejob[0], ("CRONHOLD_DATA", "nowhere")], &["queues"])
        .exits(3)
        .prints("no daemon is running");
    with_sidejob(&sandbox, &[sidejob[0], ("CRONHOLD_URL", "http://127.0.0.1:1")], &["queues"]).exits(3);
    let wrong = [("SIDEJOB_URL", closed), ("CRONHOLD_STORE", url.as_str())];
    with_sidejob(&sandbox, &wrong, &["queues"]).exits(0);
    // Jobs are not where tasks are.
    with_sidejob(&sandbox, &sidejob, &["list"]).exits(3).prints("cannot find a daemon");
    with_sidejob(&sandbox, &[("SIDEJOB_URL", "nonsense")], &["task", "list"]).exits(2).prints("SIDEJOB_URL");
}
