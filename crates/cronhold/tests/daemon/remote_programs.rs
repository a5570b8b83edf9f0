//! Programs that are tasks of a remote service, with a real service, while the daemon is killed.

use super::daemon::{Sandbox, transcript};
use super::processes::eventually;
use super::service::TaskService;

fn run(sandbox: &Sandbox, job: &str) {
    assert!(transcript(&mut sandbox.verb(&["run", job])).ends_with("exit 0\n"), "{job}");
}

#[test]
fn run_ends_as_its_task_does() {
    let sandbox = Sandbox::new("remote-ends");
    let tasks = TaskService::start();
    sandbox.put_job("load", &tasks.program());
    let mut daemon = sandbox.up();
    for (number, (ends, state, reason)) in
        [("DONE", "success", None), ("FAILED", "failure", Some(r#"said: {"id": 2, "state": "FAILED"}"#))]
            .into_iter()
            .enumerate()
    {
        let task = number + 1;
        run(&sandbox, "load");
        eventually("the task is polled", || tasks.count() == task && tasks.polls(task) > 1);
        tasks.set(task, ends);
        daemon.wait_until_run(&format!("load#{task}"), state);
        let run = sandbox.stored().run("load", task as u64).clone();
        assert_eq!(run.reason.as_ref().map(ToString::to_string).as_deref(), reason);
        assert_eq!(run.remote_task(), Some(format!("{{\"id\": {task}, \"state\": \"NEW\"}}").as_str()));
        assert_eq!(sandbox.output(&run), format!("{{\"id\": {task}, \"state\": \"{ends}\"}}").as_bytes());
    }
    let starts = tasks.service.requests("/tasks");
    let runs: Vec<String> = [1, 2].map(|number| sandbox.stored().run("load", number).id.to_string()).to_vec();
    assert_eq!(starts.iter().map(|request| request.key().to_owned()).collect::<Vec<_>>(), runs);
    assert_eq!(starts[0].text(), format!("{{\"run\": \"{}\"}}", runs[0]));
    let shown = transcript(&mut sandbox.verb(&["show", "load#1"]));
    assert!(shown.contains(r#"task      {"id": 1, "state": "NEW"}"#), "{shown}");
}

#[test]
fn stop_cancels_the_task() {
    let sandbox = Sandbox::new("remote-stop");
    let tasks = TaskService::start();
    sandbox.put_job("load", &tasks.program());
    let mut daemon = sandbox.up();
    run(&sandbox, "load");
    eventually("the task is polled", || tasks.count() == 1 && tasks.polls(1) > 0);
    assert!(transcript(&mut sandbox.verb(&["stop", "load"])).ends_with("exit 0\n"));
    daemon.wait_until_run("load#1", "failure");
    assert_eq!(tasks.state(1), "CANCELLED");
    let reason = sandbox.stored().run("load", 1).reason.as_ref().map(ToString::to_string);
    assert_eq!(reason.as_deref(), Some("stopped"));
}

#[test]
fn killed_daemon_continues_to_poll_the_task() {
    let sandbox = Sandbox::new("remote-killed");
    let tasks = TaskService::start();
    sandbox.put_job("load", &tasks.program());
    let daemon = sandbox.up();
    run(&sandbox, "load");
    eventually("the task is polled", || tasks.count() == 1 && tasks.polls(1) > 0);
    daemon.kill();
    let before = tasks.polls(1);
    let mut daemon = sandbox.up();
    eventually("the task is polled again", || tasks.polls(1) > before + 1);
    tasks.set(1, "DONE");
    daemon.wait_until_run("load#1", "success");
    assert_eq!(tasks.count(), 1, "it was started once");
    assert_eq!(tasks.service.requests("/tasks").len(), 1);
}

/// The service has started the task, and the daemon is killed before it knows that.
#[test]
fn daemon_killed_during_the_start_starts_no_second_task() {
    let sandbox = Sandbox::new("remote-start");
    let tasks = TaskService::start();
    sandbox.put_job("once", &tasks.program());
    sandbox.put_job("again", &format!("{}on_lost: retry\n", tasks.program()));
    let mut daemon = sandbox.up();
    tasks.withhold_starts(true);
    for (number, job) in ["once", "again"].into_iter().enumerate() {
        run(&sandbox, job);
        daemon.wait_until_run(&format!("{job}#1"), "running");
        eventually("the task is started", || tasks.count() == number + 1);
    }
    daemon.kill();
    tasks.withhold_starts(false);
    let mut daemon = sandbox.up();
    daemon.wait_until_run("once#1", "error");
    eventually("the task is polled", || tasks.polls(2) > 0);
    tasks.set(2, "DONE");
    daemon.wait_until_run("again#1", "success");
    assert_eq!(tasks.count(), 2, "the second start had the key of the first");
    assert_eq!(tasks.service.requests("/tasks").len(), 3);
    assert_eq!(tasks.polls(1), 0);
}
