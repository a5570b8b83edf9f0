//! SideJob's own HTTP interface: its paths, bodies and replies.

use serde_json::{Value, json};

use super::sandbox::Daemon;
use super::tasks::with_classes;

/// Sends a request, and returns the status and the JSON of the response.
#[track_caller]
fn send(daemon: &Daemon, line: &str, body: &str) -> (u16, Value) {
    let reply = daemon.send(line, body);
    (reply.status, reply.json())
}

#[test]
fn requests_of_sidejobs_clients_are_answered_as_they_expect() {
    let (_sandbox, daemon) = with_classes("sidejob");
    let version = json!({"version": "4.1.0"});
    for path in ["/sidejob", "/sidejob/"] {
        assert_eq!(daemon.get(path), version);
    }
    let jobs = "POST /sidejob/jobs";
    for (line, body, expected) in [
        (jobs, r#"{"queue": "core", "class": "Sum", "args": [1]}"#, json!({"job": 1})),
        (
            jobs,
            r#"{"queue": "core", "class": "Sum", "parent": 1, "name": "child", "by": "test",
            "inports": {"in": {"default": [7]}, "memory": {"default": null}}}"#,
            json!({"job": 2}),
        ),
        (
            "GET /sidejob/jobs/2",
            "",
            json!({"job": 2, "state": {}, "outports": {"sum": {"size": 0}},
            "inports": {"in": {"size": 0, "default": [7]}, "ready": {"size": 0}, "memory": {"size": 0, "default": null}}}),
        ),
        (
            "POST /sidejob/jobs/1/state",
            r#"{"a": 1, "context": {"x": 2}}"#,
            json!({"job": 1, "state": {"a": 1, "context": {"x": 2}}}),
        ),
        ("POST /sidejob/jobs/1/inports/in/write", r#"{"data": [1], "context": {"who": "me"}}"#, Value::Null),
        ("POST /sidejob/jobs/1/inports/in/write", r#"{"list": [2, null, 3]}"#, Value::Null),
        ("POST /sidejob/jobs/1/inports/in/read", "", json!({"data": [1], "context": {"who": "me"}})),
        (
            "POST /sidejob/jobs/1/inports/in/entries",
            "",
            json!({"entries": [{"data": 2, "context": {}},
            {"data": null, "context": {}}, {"data": 3, "context": {}}]}),
        ),
        ("POST /sidejob/jobs/1/inports/in/read", "", json!({})),
        ("POST /sidejob/jobs/2/inports/in/read", "", json!({"data": [7], "context": {}})),
        ("POST /sidejob/jobs/1/outports/sum/write", r#"{"data": 5}"#, Value::Null),
        ("POST /sidejob/jobs/1/ports", r#"{"inports": {"in": {"default": 1}}}"#, Value::Null),
        ("POST /sidejob/jobs/1/run", r#"{"wait": 1000}"#, Value::Null),
        ("POST /sidejob/jobs/1/disown", r#"{"name": "child"}"#, Value::Null),
        ("POST /sidejob/jobs/1/adopt", r#"{"child": 2, "name": "again"}"#, Value::Null),
        ("DELETE /sidejob/jobs/1", "", json!({"job": 1, "delete": false})),
        ("POST /sidejob/publish", r#"{"channel": "/a", "message": 1}"#, Value::Null),
        ("POST /sidejob/log", r#"{"entry": {"read": []}}"#, Value::Null),
        ("POST /sidejob/jobs/1/terminate", r#"{"recursive": true}"#, Value::Null),
        // A body that cannot be read counts as an empty one.
        ("POST /sidejob/jobs/1/run", "[", Value::Null),
    ] {
        assert_eq!(send(&daemon, line, body), (200, expected), "{line} {body}");
    }
    let status = |id: u64| daemon.get(&format!("/api/v1/tasks/{id}"))["status"].clone();
    assert_eq!((status(1), status(2)), (json!("terminating"), json!("terminating")), "only `force` runs them again");
    let run = r#"{"data": 1, "run": {"force": true, "parent": true}}"#;
    assert_eq!(send(&daemon, "POST /sidejob/jobs/2/inports/in/write", run), (200, Value::Null));
    assert_eq!((status(1), status(2)), (json!("queued"), json!("terminating")));
}

#[test]
fn every_error_of_sidejobs_interface_is_a_422_with_a_text() {
    let (_sandbox, daemon) = with_classes("sidejob-errors");
    daemon.send("POST /sidejob/jobs", r#"{"queue": "core", "class": "Sum"}"#);
    for (line, body, error) in [
        ("POST /sidejob/jobs", "{}", "Missing queue"),
        ("POST /sidejob/jobs", r#"{"queue": "core"}"#, "Missing class"),
        ("POST /sidejob/jobs", r#"{"queue": "core", "class": "Sum", "parent": 1}"#, "Missing name"),
        ("POST /sidejob/jobs", r#"{"queue": "core", "class": "Other"}"#, "class `Other` is not registered"),
        ("GET /sidejob/jobs/9", "", "Job 9 does not exist"),
        ("GET /sidejob/jobs/12abc", "", "Job 12abc does not exist"),
        ("POST /sidejob/jobs/nobody/run", "", "Job nobody does not exist"),
        ("POST /sidejob/jobs/1/inports/in/write", "{}", "Missing data"),
        ("POST /sidejob/jobs/1/inports/nothing/read", "", "does not exist"),
        ("POST /sidejob/jobs/1/ports/in/read", "", "inports and outports"),
        ("POST /sidejob/jobs/1/lock", r#"{"ttl": 5}"#, "locks are not supported"),
        ("POST /sidejob/jobs/1/disown", r#"{"name": "child"}"#, "no such child"),
        ("POST /sidejob/publish", r#"{"message": 1}"#, "Missing channel"),
    ] {
        let (status, reply) = send(&daemon, line, body);
        let text = reply["error"].as_str().unwrap_or_default();
        assert!(status == 422 && text.contains(error), "{line} {body}: {status} {reply}");
    }
    assert_eq!(daemon.get("/api/v1/tasks")["tasks"].as_array().expect("tasks").len(), 1, "none was created half way");
    // Requests need the token here too.
    assert_eq!(daemon.open("GET /sidejob/jobs/1").status, 401);
}
