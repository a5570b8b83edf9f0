//! Tasks of a remote service on two real nodes, one of which is killed.

use crate::processes::eventually;
use crate::sandbox::Sandbox;
use crate::service::TaskService;

#[test]
fn surviving_node_follows_the_task_of_the_killed_one() {
    let sandbox = Sandbox::new("remote-tasks");
    let tasks = TaskService::start();
    sandbox.put("jobs/load.yaml", &tasks.program());
    let mut one = sandbox.up("one", &["--jobs", "jobs"]);
    eventually("the job is loaded", || sandbox.at_store(&["show", "load"]).code == Some(0));
    sandbox.done(&["run", "load"]);
    eventually("the task is polled", || tasks.count() == 1 && tasks.polls(1) > 1);
    let other = sandbox.up("other", &[]);
    one.kill();
    let before = tasks.polls(1);
    eventually("the other node polls the task", || tasks.polls(1) > before + 1);
    tasks.set(1, "DONE");
    let run = || sandbox.json(&["show", "load#1"]);
    eventually("the run has ended", || run()["state"] == "success");
    assert_eq!((run()["node"].as_str(), tasks.count()), (Some("other"), 1));
    let log = run()["log"].to_string();
    assert!(log.contains("taken over from node one"), "{log}");
    other.stop();
}
