//! A keeper that hangs, and one that cannot be started. The daemon claims nothing meanwhile, says so, decides what has
//! no answer, and continues when the keeper works again.

use std::fs;
use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_core::run::Reason;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::super::daemon::{Daemon, Sandbox, Stored};
use super::super::http::Api;
use super::super::processes::eventually;

/// A job that is due every second, and of which no occurrence is dropped.
const TICK: &str = "program: 'true'\noverlap: allow\ncatch_up: {policy: all, within: 1h}\nschedule: {every: 1s}\n";

/// Launches that a keeper can receive before the daemon notices that it hangs, one in a second.
const UNNOTICED_MAX: usize = 10;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Asserts that every face says whether the keeper fails.
fn assert_reported(api: &Api, is_failing: bool) {
    let (head, body) = api.exchange("GET", "/health", "");
    let health = json(&body);
    assert_eq!(head.starts_with("HTTP/1.1 503"), is_failing, "{head}");
    assert_eq!((health["ok"] == false, health["trouble"].is_null()), (is_failing, !is_failing), "{health}");
    let (head, _) = api.exchange("GET", "/ready", "");
    assert_eq!(head.starts_with("HTTP/1.1 503"), is_failing, "{head}");
    let nodes = json(&api.get("/api/v1/nodes"));
    assert_eq!(nodes[0]["keeper_problem"].is_string(), is_failing, "{nodes}");
    let up = format!("cronhold_keeper_up {}\n", u8::from(!is_failing));
    let metrics = api.get("/metrics");
    assert!(metrics.contains(&up), "{metrics}");
}

/// A sandbox with a program that runs until the file `go` exists, a job that is due every second, and one that is not
/// scheduled.
fn sandbox_with_jobs(name: &str) -> Sandbox {
    let sandbox = Sandbox::new(name);
    let program = format!("until [ -e {} ]; do sleep 0.02; done", sandbox.path("go").display());
    sandbox.put_job("slow", &format!("program: '{program}'\nshell: /bin/sh\nschedule: '@reboot'\n"));
    sandbox.put_job("tick", TICK);
    sandbox.put_job("manual", "program: 'true'\n");
    sandbox
}

/// Waits until every second so far has exactly one outcome.
fn wait_until_complete(daemon: &mut Daemon, sandbox: &Sandbox) -> Stored {
    let mut reached = sandbox.stored().reached();
    reached.retain(|job, _| job == "tick");
    daemon.wait_until_complete(sandbox, &reached, 3)
}

fn signal_keeper(sandbox: &Sandbox, signal: Signal) {
    kill_process(sandbox.keeper().expect("a keeper"), signal).expect("it runs");
}

/// The launch that the keeper had received has an outcome, nothing else is claimed, and everything that was due runs
/// when the keeper continues. A program that is to be stopped is stopped then.
#[test]
fn hung_keeper_stops_claims_until_it_responds() {
    let sandbox = sandbox_with_jobs("hung");
    let mut daemon = sandbox.up();
    daemon.wait_until_run("slow#1", "running");
    daemon.wait_for_event("run_state", &[("job", "tick"), ("state", "success")]);
    let api = Api::of(&sandbox);
    assert_reported(&api, false);
    signal_keeper(&sandbox, Signal::STOP);
    daemon.wait_until_logged("keeper_failed", &[]);
    assert_reported(&api, true);
    let created = json(&api.post("/api/v1/jobs/manual/runs", "{}"));
    let lost = daemon.wait_until_logged("run_state", &[("job", "tick"), ("state", "error")]);
    let reason = lost["reason"].as_str().expect("text");
    assert!(reason.contains("not launched") && reason.contains("keeper"), "{reason}");
    api.post(&format!("/api/v1/runs/{}/stop", sandbox.stored().run("slow", 1).id), "{}");
    eventually("it is being stopped", || sandbox.stored().run("slow", 1).state == State::Stopping);
    for job in ["slow", "tick", "manual"] {
        let why = api.get(&format!("/api/v1/jobs/{job}/why"));
        assert!(why.contains("keeper"), "{why}");
    }
    let is_starting = |run: &Arc<Run>| run.state == State::Starting;
    eventually("every launch has an outcome", || !sandbox.stored().runs.iter().any(is_starting));
    let stored = sandbox.stored();
    let waiting = stored.runs.iter().find(|run| created["id"] == run.id.to_string()).expect("it was created");
    assert_eq!(waiting.state, State::Waiting);

    signal_keeper(&sandbox, Signal::CONT);
    daemon.wait_for("keeper_ready");
    let line = daemon.wait_until_run("slow#1", "failure");
    assert_eq!(line["reason"], Reason::Stopped.to_string());
    daemon.wait_until_logged("run_state", &[("run", &waiting.id.to_string()), ("state", "success")]);
    assert_reported(&api, false);
    let stored = wait_until_complete(&mut daemon, &sandbox);
    let failed = stored.runs.iter().filter(|run| run.state == State::Error).count();
    assert!((1..=UNNOTICED_MAX).contains(&failed), "only launches before the hang was noticed are lost: {failed}");
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// A daemon stops and starts while its keeper hangs, and adopts the programs when the keeper continues.
#[test]
fn daemon_restarts_while_keeper_hangs() {
    let sandbox = sandbox_with_jobs("hung-restart");
    let mut daemon = sandbox.up();
    daemon.wait_until_run("slow#1", "running");
    signal_keeper(&sandbox, Signal::STOP);
    daemon.wait_until_logged("keeper_failed", &[]);
    assert_eq!(daemon.stop().0.code(), Some(0));
    let mut daemon = sandbox.up();
    daemon.wait_until_logged("keeper_failed", &[]);
    assert_reported(&Api::of(&sandbox), true);
    assert_eq!(sandbox.stored().run("slow", 1).state, State::Running);
    signal_keeper(&sandbox, Signal::CONT);
    daemon.wait_for("keeper_ready");
    fs::write(sandbox.path("go"), "").expect("written");
    daemon.wait_until_run("slow#1", "success");
    wait_until_complete(&mut daemon, &sandbox);
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// A file is in the place of the keeper's directory. Occurrences, also those of the start, wait for the keeper.
#[test]
fn keeper_that_cannot_start_loses_no_occurrence() {
    let sandbox = sandbox_with_jobs("no-keeper");
    fs::write(sandbox.path("go"), "").expect("written");
    fs::create_dir_all(sandbox.path("home")).expect("a directory");
    fs::write(sandbox.path("home/keeper"), "").expect("written");
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    daemon.wait_until_logged("keeper_failed", &[]);
    daemon.wait_until_logged("ready", &[]);
    let api = Api::of(&sandbox);
    assert_reported(&api, true);
    let is_overdue = || api.get("/api/v1/jobs/tick/why").contains("keeper");
    eventually("the reason is shown", is_overdue);
    assert_eq!(sandbox.stored().runs.len(), 0, "nothing is claimed");
    fs::remove_file(sandbox.path("home/keeper")).expect("removed");
    daemon.wait_until_logged("keeper_ready", &[]);
    daemon.wait_until_run("slow#1", "success");
    assert_reported(&api, false);
    let stored = wait_until_complete(&mut daemon, &sandbox);
    assert!(stored.runs.iter().all(|run| run.state != State::Error));
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// A keeper that is killed while its directory cannot be used is started again as soon as it can.
#[test]
fn killed_keeper_is_started_again_when_possible() {
    let sandbox = sandbox_with_jobs("killed-keeper");
    let mut daemon = sandbox.up();
    daemon.wait_for_event("run_state", &[("job", "tick"), ("state", "success")]);
    let (keeper, away) = (sandbox.path("home/keeper"), sandbox.path("home/keeper-away"));
    fs::rename(&keeper, &away).expect("renamed");
    fs::write(&keeper, "").expect("written");
    signal_keeper(&sandbox, Signal::KILL);
    daemon.wait_until_logged("keeper_failed", &[]);
    // The program may still run, so its run is not over.
    assert_eq!(sandbox.stored().run("slow", 1).state, State::Running);
    fs::remove_file(&keeper).expect("removed");
    fs::rename(&away, &keeper).expect("renamed");
    daemon.wait_for("keeper_ready");
    let line = daemon.wait_until_run("slow#1", "error");
    assert_eq!(line["reason"], Reason::KeeperLost.to_string());
    wait_until_complete(&mut daemon, &sandbox);
    assert_eq!(daemon.stop().0.code(), Some(0));
}
