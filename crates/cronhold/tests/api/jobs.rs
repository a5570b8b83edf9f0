//! Endpoints of jobs: put, show, list, pause and remove.

use serde_json::{Value, json};

use super::sandbox::{IDLE, Sandbox};

#[test]
fn jobs_are_put_shown_listed_and_removed() {
    let sandbox = Sandbox::new("jobs");
    let daemon = sandbox.up();
    let job =
        json!({"program": ["echo", "hi"], "schedule": "0 3 * * *", "labels": ["night"], "description": "Says hi."});
    let made = daemon.send("PUT /api/v1/jobs/team%2Fhello", &job.to_string());
    assert_eq!(made.status, 201, "{}", made.text());
    let shown = made.json();
    assert_eq!(
        (&shown["id"], &shown["schedule"], &shown["source"]),
        (&"team/hello".into(), &"0 3 * * *".into(), &"api".into())
    );
    assert_eq!((&shown["revision"], &shown["labels"], &shown["paused"]), (&1.into(), &json!(["night"]), &false.into()));
    assert!(shown["next"].as_str().expect("a time").ends_with("T03:00:00Z"), "{shown}");
    assert_eq!(shown["definition"]["program"], json!(["echo", "hi"]));
    assert_eq!(daemon.get("/api/v1/jobs/team%2Fhello"), shown);

    // The YAML of a job is a job file that defines the same job.
    let yaml = shown["yaml"].as_str().expect("a text");
    let again = daemon.request(&format!("PUT /api/v1/jobs/team%2Fhello\nContent-Type: application/yaml\n\n{yaml}"));
    assert_eq!((again.status, &again.json()["revision"]), (200, &1.into()), "{}", again.text());
    let changed = daemon.request(&format!(
        "PUT /api/v1/jobs/team%2Fhello\nContent-Type: text/yaml; charset=utf-8\n\n{}",
        yaml.replace("Says hi", "Says hello")
    ));
    assert_eq!((changed.status, &changed.json()["revision"]), (200, &2.into()), "{}", changed.text());

    for id in ["a", "b"] {
        assert_eq!(daemon.send(&format!("PUT /api/v1/jobs/{id}"), r#"{"program": "true"}"#).status, 201);
    }
    for (query, expected) in [
        ("", &["a", "b", "team/hello"][..]),
        ("?match=*h*", &["team/hello"]),
        ("?match=%3F", &["a", "b"]),
        ("?label=night", &["team/hello"]),
        ("?label=day", &[]),
        ("?after=a", &["b", "team/hello"]),
        ("?limit=1", &["a"]),
        ("?limit=1&after=a", &["b"]),
    ] {
        assert_eq!(ids(&daemon.get(&format!("/api/v1/jobs{query}"))), expected, "{query}");
    }
    assert_eq!(daemon.get("/api/v1/jobs?limit=1")["next"], "a");
    assert_eq!(daemon.get("/api/v1/jobs")["next"], Value::Null);

    let gone = daemon.request("DELETE /api/v1/jobs/a");
    assert_eq!((gone.status, gone.body.len()), (204, 0));
    daemon.request("GET /api/v1/jobs/a").assert_problem(404, "not_found");
    daemon.request("DELETE /api/v1/jobs/a").assert_problem(404, "not_found");
    assert_eq!(ids(&daemon.get("/api/v1/jobs")), ["b", "team/hello"]);
}

fn ids(list: &Value) -> Vec<&str> {
    list["jobs"].as_array().expect("a list").iter().map(|job| job["id"].as_str().expect("an id")).collect()
}

#[test]
fn invalid_jobs_are_refused_with_line_and_column() {
    let sandbox = Sandbox::new("jobs-mistakes");
    sandbox.put_file("file", IDLE);
    sandbox.put_file("broken", "progam: x\n");
    let daemon = sandbox.up();
    let refused =
        daemon.request("PUT /api/v1/jobs/x\nContent-Type: application/yaml\n\nprogram: x\nschedule: 61 * * * *\n");
    let problem = refused.assert_problem(422, "invalid");
    assert!(problem["detail"].as_str().expect("a text").starts_with("x:2:11: "), "{problem}");
    let unknown = daemon.send("PUT /api/v1/jobs/x", r#"{"program": "x", "scedule": "@daily"}"#);
    assert!(unknown.assert_problem(422, "invalid")["detail"].as_str().expect("a text").contains("`schedule`"));
    daemon.request("GET /api/v1/jobs/x").assert_problem(404, "not_found");

    // A job from a file can only be changed in the file.
    let other = daemon.send("PUT /api/v1/jobs/file", r#"{"program": "true"}"#);
    other.assert_problem(409, "conflict");
    daemon.request("DELETE /api/v1/jobs/file").assert_problem(409, "conflict");
    // A file that was never valid is listed with its mistakes.
    let list = daemon.get("/api/v1/jobs?match=broken");
    assert_eq!((&list["jobs"][0]["errors"][0]["line"], &list["jobs"][0]["source"]), (&1.into(), &"".into()), "{list}");
}

#[test]
fn jobs_are_paused_and_resumed() {
    let sandbox = Sandbox::new("jobs-pauses");
    sandbox.put_file("a", IDLE);
    let daemon = sandbox.up();
    let pause = "X-Cronhold-User: anna\nContent-Type: application/json\n\n{\"why\": \"tea\"}";
    assert_eq!(daemon.request(&format!("POST /api/v1/jobs/a/pause\n{pause}")).status, 204);
    let shown = daemon.get("/api/v1/jobs/a");
    assert_eq!((&shown["pause"]["by"], &shown["pause"]["why"]), (&"anna".into(), &"tea".into()), "{shown}");
    assert_eq!(daemon.request("POST /api/v1/jobs/a/resume").status, 204);
    assert_eq!(daemon.get("/api/v1/jobs/a")["paused"], false);
    assert_eq!(daemon.request("POST /api/v1/jobs/a/resume").status, 200, "nothing to do");

    assert_eq!(daemon.request(&format!("POST /api/v1/pause\n{pause}")).status, 204);
    let shown = daemon.get("/api/v1/jobs/a");
    assert_eq!((&shown["paused"], &shown["pause"]["everything"]), (&true.into(), &true.into()));
    assert_eq!(daemon.get("/api/v1/jobs")["pause"]["by"], "anna");
    assert_eq!(daemon.request("POST /api/v1/resume").status, 204);
    assert_eq!(daemon.get("/api/v1/jobs")["pause"], Value::Null);
    daemon.request("POST /api/v1/jobs/nobody/pause").assert_problem(404, "not_found");
}
