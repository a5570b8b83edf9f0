//! Endpoints about schedules, health, metrics and nodes, and the endpoints `reload` and `control`.

use std::fs;

use serde_json::{Value, json};

use super::sandbox::{Daemon, IDLE, Sandbox};

#[test]
fn next_why_backfill_and_holes_are_answered() {
    let sandbox = Sandbox::new("questions");
    sandbox.put_file("daily", "program: {noop: true}\nschedule: {daily: '12:00'}\n");
    let daemon = sandbox.up();
    let next = daemon.get("/api/v1/jobs/daily/next?count=2&from=2090-01-01T00:00:00Z");
    let times: Vec<&Value> = next.as_array().expect("a list").iter().map(|occurrence| &occurrence["at"]).collect();
    assert_eq!(times, ["2090-01-01T12:00:00Z", "2090-01-02T12:00:00Z"]);
    let why = daemon.get("/api/v1/jobs/daily/why");
    assert_eq!(why["lines"][0]["tone"], "answer", "{why}");
    let why = daemon.get("/api/v1/jobs/daily/why?at=2020-01-01T12:00:00Z");
    assert_eq!(why["at"], "2020-01-01T12:00:00Z");
    let backfill = daemon.get("/api/v1/jobs/daily/backfill?from=2020-01-01T00:00:00Z&to=2020-01-03T00:00:00Z");
    let items = backfill["items"].as_array().expect("a list");
    assert_eq!((items.len(), &items[0]["at"], &backfill["cut"]), (2, &"2020-01-01T12:00:00Z".into(), &false.into()));
    // The key of an item creates its run only once.
    let body = json!({"at": items[0]["at"]}).to_string();
    let key = items[0]["key"].as_str().expect("a key");
    let make =
        format!("POST /api/v1/jobs/daily/runs\nIdempotency-Key: {key}\nContent-Type: application/json\n\n{body}");
    let (first, second) = (daemon.request(&make), daemon.request(&make));
    assert_eq!((first.status, first.json()["id"] == second.json()["id"]), (201, true), "{}", first.text());
    let holes = daemon.get("/api/v1/holes?job=daily");
    assert_eq!((&holes["found"], &holes["jobs"]), (&0.into(), &1.into()), "{holes}");
    assert_eq!(daemon.get("/api/v1/holes")["found"], 0);
    for path in
        ["jobs/nobody/next", "jobs/nobody/why", "jobs/nobody/backfill?from=2020-01-01T00:00:00Z", "holes?job=nobody"]
    {
        daemon.request(&format!("GET /api/v1/{path}")).assert_problem(404, "not_found");
    }
    for path in ["jobs/daily/next?count=0", "jobs/daily/why?at=noon", "jobs/daily/backfill", "holes?from=x"] {
        daemon.request(&format!("GET /api/v1/{path}")).assert_problem(400, "bad_request");
    }
}

#[test]
fn nodes_health_metrics_and_openapi_are_served() {
    let sandbox = Sandbox::new("health");
    sandbox.put_file("a", IDLE);
    let daemon = sandbox.up();
    daemon.run("a");
    let nodes = daemon.get("/api/v1/nodes");
    assert_eq!((&nodes[0]["name"], &nodes[0]["is_this"], &nodes[1]), (&"test".into(), &true.into(), &Value::Null));
    for path in ["/health", "/ready"] {
        let health = daemon.open(&format!("GET {path}"));
        assert_eq!((health.status, &health.json()["ok"], &health.json()["ready"]), (200, &true.into(), &true.into()));
    }
    let metrics = daemon.request("GET /metrics");
    assert_eq!(
        (metrics.status, metrics.header("content-type")),
        (200, Some("text/plain; version=0.0.4; charset=utf-8"))
    );
    for line in ["cronhold_ready 1", "cronhold_jobs 1", "cronhold_runs_finished_total 1", "cronhold_store_up 1"] {
        assert!(metrics.text().lines().any(|found| found == line), "{line}: {}", metrics.text());
    }
    // The served document equals the one in docs/reference.
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
    let committed: Value = serde_json::from_slice(&fs::read(committed).expect("a document")).expect("JSON");
    assert!(daemon.get("/openapi.json") == committed, "docs/reference/openapi.json is old; run `./dev docs`");
    // HEAD requests are answered too.
    let head = {
        let mut wire = daemon.wire();
        wire.send(&daemon.http("HEAD /health"));
        wire.head()
    };
    assert_eq!(head.status, 200);
    let page = daemon.open("GET /");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
}

#[test]
fn reload_applies_job_files() {
    let sandbox = Sandbox::new("reload");
    sandbox.put_file("a", IDLE);
    let daemon = sandbox.up();
    sandbox.put_file("b", IDLE);
    sandbox.put_file("c", "progam: x\n");
    let reloaded = daemon.request("POST /api/v1/reload");
    assert_eq!((reloaded.status, reloaded.json()["mistakes"].as_u64() > Some(0)), (200, true), "{}", reloaded.text());
    assert_eq!(daemon.get("/api/v1/jobs/b")["source"], "directory:");
}

#[test]
fn control_accepts_events_of_cronken() {
    let sandbox = Sandbox::new("control");
    sandbox.put_file("a", IDLE);
    let daemon = sandbox.up();
    let send = |event: &Value| daemon.send("POST /api/v1/control", &event.to_string());
    let program = json!({"cmd": "exec sleep 1000", "lock": false, "ttl": 10});
    let definition = json!({"cron_args": {"cronstring": "0 3 * * *"}, "job_args": program});
    let add = json!({"action": "add", "args": {"job_name": "backup", "job_def": definition}});
    assert_eq!(send(&add).status, 204);
    send(&add).assert_problem(409, "conflict");
    for (action, paused) in [("pause", true), ("resume", false)] {
        assert_eq!(send(&json!({"action": action, "args": "backup"})).status, 204);
        assert_eq!(daemon.get("/api/v1/jobs/backup")["paused"], paused);
    }
    for action in ["terminate_run", "kill_run"] {
        let id = triggered(&daemon, send(&json!({"action": "trigger", "args": "backup"})).status);
        assert_eq!(send(&json!({"action": action, "args": id})).status, 204);
        daemon.wait_for(&id, |run| !run["times"]["finished"].is_null());
    }
    assert_eq!(send(&json!({"action": "validate", "args": ["backup"]})).status, 204);
    assert_eq!(send(&json!({"action": "reload"})).status, 204);
    assert_eq!(send(&json!({"action": "remove", "args": "backup"})).status, 204);
    for (event, status, code) in [
        (json!({"action": "remove", "args": "backup"}), 404, "not_found"),
        (json!({"action": "explode"}), 422, "invalid"),
        (json!({"action": "pause", "args": 7}), 422, "invalid"),
        (json!({"action": "pause", "args": "a", "more": 1}), 400, "bad_request"),
        (json!({"args": {}}), 400, "bad_request"),
    ] {
        send(&event).assert_problem(status, code);
    }
}

/// Waits until the run that an event has created runs, and returns its id.
fn triggered(daemon: &Daemon, status: u16) -> String {
    assert_eq!(status, 201);
    let run = daemon.wait_for("backup", |run| run["state"] == "running");
    run["id"].as_str().expect("an id").to_owned()
}
