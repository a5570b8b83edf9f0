//! Operations on runs, with real signals to real programs.

use serde_json::Value;

use super::sandbox::{Daemon, ENDLESS, IDLE, Sandbox};

/// Starts a run, and waits until its program runs.
fn begin(daemon: &Daemon, job: &str) -> String {
    let made = daemon.request(&format!("POST /api/v1/jobs/{job}/runs"));
    assert_eq!(made.status, 201, "{}", made.text());
    let id = made.json()["id"].as_str().expect("an id").to_owned();
    daemon.wait_for(&id, |run| run["state"] == "running");
    id
}

/// Performs an operation on a run, and returns the run afterwards.
#[track_caller]
fn operate(daemon: &Daemon, id: &str, what: &str, body: &str) -> Value {
    let reply = daemon.send(&format!("POST /api/v1/runs/{id}/{what}"), body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json()["id"], *id);
    reply.json()
}

#[test]
fn stop_kill_and_signal_end_programs() {
    let sandbox = Sandbox::new("operations");
    sandbox.put_file("endless", ENDLESS);
    let daemon = sandbox.up();
    let ended = |id: &str| daemon.wait_for(id, |run| !run["times"]["finished"].is_null());
    for (what, body, signal, state) in [
        ("stop", "", "SIGTERM", "failure"),
        ("kill", "", "SIGKILL", "failure"),
        ("signal", r#"{"signal": "INT"}"#, "SIGINT", "failure"),
    ] {
        let id = begin(&daemon, "endless");
        operate(&daemon, &id, what, body);
        let run = ended(&id);
        assert_eq!((&run["signal"], &run["state"]), (&signal.into(), &state.into()), "{what}: {run}");
        let log = run["log"].to_string();
        assert!(log.contains("operator api"), "{log}");
        daemon.send(&format!("POST /api/v1/runs/{id}/{what}"), body).assert_problem(409, "conflict");
    }
    let id = begin(&daemon, "endless");
    daemon.send(&format!("POST /api/v1/runs/{id}/signal"), r#"{"signal": "NONE"}"#).assert_problem(422, "invalid");
    daemon.send(&format!("POST /api/v1/runs/{id}/mark"), r#"{"state": "success"}"#).assert_problem(409, "conflict");
    operate(&daemon, &id, "kill", "");
    let run = ended(&id);
    assert_eq!(run["state"], "failure", "{run}");
    let marked = operate(&daemon, &id, "mark", r#"{"state": "success", "why": "it was enough"}"#);
    assert_eq!(marked["state"], "success");
    daemon.send(&format!("POST /api/v1/runs/{id}/mark"), r#"{"state": "running"}"#).assert_problem(409, "conflict");
    daemon.send(&format!("POST /api/v1/runs/{id}/mark"), r#"{"state": "done"}"#).assert_problem(400, "bad_request");
}

#[test]
fn waiting_runs_start_or_skip_and_finished_runs_rerun() {
    let sandbox = Sandbox::new("operations-waiting");
    sandbox.put_file("a", IDLE);
    let daemon = sandbox.up();
    let plan = || {
        let made = daemon.send("POST /api/v1/jobs/a/runs", r#"{"at": "2090-01-01T00:00:00Z"}"#);
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["id"].as_str().expect("an id").to_owned()
    };
    let early = plan();
    operate(&daemon, &early, "start", "");
    let run = daemon.wait_for(&early, |run| run["state"] == "success");
    assert_eq!(run["nominal_time"], "2090-01-01T00:00:00Z");
    let not = plan();
    let skipped = operate(&daemon, &not, "skip", r#"{"why": "not then"}"#);
    assert_eq!((&skipped["state"], &skipped["reason"]), (&"skipped".into(), &"by operator: not then".into()));
    daemon.request(&format!("POST /api/v1/runs/{not}/start")).assert_problem(409, "conflict");

    let again = daemon.send(&format!("POST /api/v1/runs/{early}/rerun"), r#"{"current": true}"#);
    assert_eq!(again.status, 201, "{}", again.text());
    let id = again.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(again.header("location"), Some(format!("/api/v1/runs/{id}").as_str()));
    let run = daemon.wait_for(&id, |run| run["state"] == "success");
    assert_eq!(run["rerun_of"], *early);
    for what in ["start", "skip", "stop", "kill", "rerun"] {
        daemon.request(&format!("POST /api/v1/runs/nobody/{what}")).assert_problem(404, "not_found");
    }
}
