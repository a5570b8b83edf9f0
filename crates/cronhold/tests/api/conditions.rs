//! Conditional requests: changes of a job with `If-Match`, and runs with `Idempotency-Key`.

use super::sandbox::{IDLE, Sandbox};

const JOB: &str = r#"{"program": {"noop": true}, "schedule": "triggered"}"#;
const OTHER: &str = r#"{"program": {"noop": true}, "schedule": "triggered", "description": "other"}"#;

#[test]
fn if_match_protects_a_changed_job() {
    let sandbox = Sandbox::new("etag");
    let daemon = sandbox.up();
    let put = |condition: &str, body: &str| {
        daemon.request(&format!("PUT /api/v1/jobs/a\n{condition}\nContent-Type: application/json\n\n{body}"))
    };
    let any = "If-Match: \"00000000000000000000000000000000-1\"";
    put("If-Match: *", JOB).assert_problem(404, "not_found");
    put(any, JOB).assert_problem(404, "not_found");
    let made = put("If-None-Match: *", JOB);
    assert_eq!(made.status, 201, "{}", made.text());
    put("If-None-Match: *", JOB).assert_problem(409, "conflict");

    let first = made.header("etag").expect("a tag").to_owned();
    assert!(first.starts_with('"') && first.ends_with("-1\""), "{first}");
    assert_eq!(daemon.request("GET /api/v1/jobs/a").header("etag"), Some(first.as_str()));
    let changed = put(&format!("If-Match: {first}"), OTHER);
    let second = changed.header("etag").expect("a tag").to_owned();
    assert_eq!((changed.status, second != first), (200, true));
    put(&format!("If-Match: {first}"), JOB).assert_problem(412, "changed");
    put(any, JOB).assert_problem(412, "changed");
    assert_eq!(daemon.get("/api/v1/jobs/a")["description"], "other", "the job is unchanged");
    assert_eq!(put("If-Match: *", JOB).status, 200);
    for bad in ["If-Match: x", "If-Match: W/\"x\"", "If-None-Match: \"x\"", "If-Match: *\nIf-None-Match: *"] {
        put(bad, JOB).assert_problem(400, "bad_request");
    }

    let remove = |tag: &str| daemon.request(&format!("DELETE /api/v1/jobs/a\nIf-Match: {tag}"));
    remove(&second).assert_problem(412, "changed");
    remove("x").assert_problem(400, "bad_request");
    let now = daemon.request("GET /api/v1/jobs/a").header("etag").expect("a tag").to_owned();
    assert_eq!(remove(&now).status, 204);
    remove(&now).assert_problem(404, "not_found");
    // A job that is created again has a new tag, although it has revision 1 again.
    assert_eq!(put("If-None-Match: *", JOB).status, 201);
    remove(&first).assert_problem(412, "changed");
    assert_eq!(remove("*").status, 204);
}

#[test]
fn repeated_idempotency_key_returns_the_same_run() {
    let sandbox = Sandbox::new("idempotency");
    sandbox.put_file("a", IDLE);
    let daemon = sandbox.up();
    let request = |daemon: &super::sandbox::Daemon, key: &str, path: &str, body: &str| {
        let reply =
            daemon.request(&format!("POST {path}\nIdempotency-Key: {key}\nContent-Type: application/json\n\n{body}"));
        (
            reply.status,
            reply.json()["id"].as_str().expect("an id").to_owned(),
            reply.header("location").map(str::to_owned),
        )
    };
    let make = "/api/v1/jobs/a/runs";
    let (status, first, location) = request(&daemon, "k", make, "{}");
    assert_eq!((status, location), (201, Some(format!("/api/v1/runs/{first}"))));
    assert_eq!(request(&daemon, "k", make, "{}").1, first);
    let (status, other, _) = request(&daemon, "l", make, "{}");
    assert_eq!((status, other != first), (201, true));
    let (status, planned, _) = request(&daemon, "k", make, r#"{"at": "2090-01-01T00:00:00Z"}"#);
    assert_eq!((status, planned != first), (201, true));
    daemon.wait_for(&first, |run| run["state"] == "success");
    let (status, again, _) = request(&daemon, "k", &format!("/api/v1/runs/{first}/rerun"), "{}");
    assert_eq!((status, again != first), (201, true));
    assert_eq!(request(&daemon, "k", &format!("/api/v1/runs/{first}/rerun"), "{}").1, again);
    assert_eq!(daemon.get("/api/v1/runs")["runs"].as_array().map(Vec::len), Some(4));

    // A client that got no reply may repeat the request after a restart.
    daemon.kill();
    let daemon = sandbox.up();
    assert_eq!((200, first), {
        let (status, id, _) = request(&daemon, "k", make, "{}");
        (status, id)
    });
    assert_eq!(request(&daemon, "k", make, r#"{"at": "2090-01-01T00:00:00Z"}"#).1, planned);
    assert_eq!(daemon.get("/api/v1/runs")["runs"].as_array().map(Vec::len), Some(4));
    let long = "x".repeat(256);
    daemon.request(&format!("POST {make}\nIdempotency-Key: {long}")).assert_problem(400, "bad_request");
}
