//! Paths that try to escape their directory, inject headers, or exhaust the server.

use std::fs;

use super::sandbox::{IDLE, Sandbox};

#[test]
fn malicious_paths_are_refused() {
    let sandbox = Sandbox::new("paths");
    sandbox.put_file("a", IDLE);
    let daemon = sandbox.up();
    fs::write(sandbox.path("data/secret"), "the treasure").expect("written");
    let long = "a".repeat(300);
    let most = "a".repeat(9_000);
    for (path, statuses) in [
        ("/api/v1/jobs/..", &[400][..]),
        ("/api/v1/jobs/.", &[400]),
        ("/api/v1/jobs/../jobs", &[400]),
        ("/api/v1/../../data/secret", &[400]),
        ("/api/v1/jobs/%2e%2e", &[400]),
        ("/api/v1/jobs/%2e%2e%2f", &[400]),
        ("/api/v1/jobs/%2E%2E%2Fsecret", &[400]),
        ("/api/v1/jobs/a%2f..%2fa", &[400]),
        ("/api/v1/jobs/%252e%252e", &[400, 404]),
        ("/api/v1/jobs/..%5ca", &[400, 404]),
        ("/api/v1/jobs/%2Fetc%2Fpasswd", &[400]),
        ("/api/v1/jobs/a%00", &[400]),
        ("/api/v1/jobs/%00", &[400]),
        ("/api/v1/jobs/a%0d%0aX:%20y", &[400]),
        ("/api/v1/jobs/a%0aSet-Cookie:x", &[400]),
        ("/api/v1/jobs/%ff%fe", &[400]),
        ("/api/v1/jobs/%c0%ae%c0%ae", &[400]),
        ("/api/v1/jobs/%ed%a0%80", &[400]),
        ("/api/v1/jobs/%", &[400]),
        ("/api/v1/jobs/%2", &[400]),
        ("/api/v1/jobs/%zz", &[400]),
        ("/api/v1/jobs/%u0061", &[400]),
        ("/api/v1/jobs/", &[404]),
        ("/api/v1/jobs//a", &[404]),
        ("//api/v1/jobs", &[404]),
        ("/api/v1//jobs", &[404]),
        ("/api//v1/jobs", &[404]),
        ("/API/V1/jobs", &[404]),
        ("/api/v1/jobs;x=y", &[404]),
        ("/api/v1/runs/a%23", &[400]),
        ("/api/v1/runs/a%23-1", &[400]),
        ("/api/v1/runs/a%2399999999999999999999999", &[400]),
        ("/api/v1/runs/%2e%2e/output", &[400]),
        ("/api/v1/runs/..%2f..%2fsecret/output", &[400]),
        ("/page/..%2f..%2fetc%2fpasswd", &[404]),
        ("/page/%2e%2e/%2e%2e/data/secret", &[400]),
        ("/page/x/..%2fsecret", &[404]),
        ("/page/x/secret", &[404]),
        ("/page/", &[404]),
        ("/data/secret", &[404]),
        ("/etc/passwd", &[404]),
        (&format!("/api/v1/jobs/{long}"), &[400]),
        (&format!("/api/v1/runs/{long}"), &[400]),
        (&format!("/api/v1/jobs/{most}"), &[413]),
        (&format!("/api/v1/jobs?match={most}"), &[413]),
        ("/api/v1/jobs?limit=99999999999999999999", &[400]),
        ("/api/v1/jobs?limit=1&limit=2", &[400]),
        ("/api/v1/jobs?%ff", &[400]),
        ("/api/v1/runs?since=%00", &[400]),
    ] {
        let reply = daemon.request(&format!("GET {path}"));
        let shown: String = path.chars().take(80).collect();
        assert!(statuses.contains(&reply.status), "{shown}: {} {}", reply.status, reply.text());
        assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{shown}");
        assert!(!reply.text().contains("treasure") && !reply.text().contains("root:"), "{shown}");
        assert_eq!(reply.header("x").or(reply.header("set-cookie")), None, "{shown}");
    }
    // A pattern with exponential cost in a backtracking matcher.
    let stars = "*a".repeat(2_000);
    assert_eq!(daemon.request(&format!("GET /api/v1/jobs?match={stars}")).status, 200);
    daemon.assert_well();
}

#[test]
fn unsupported_methods_are_refused() {
    let sandbox = Sandbox::new("methods");
    sandbox.put_file("a", IDLE);
    let daemon = sandbox.up();
    for line in [
        "POST /api/v1/jobs",
        "DELETE /api/v1/jobs",
        "PATCH /api/v1/jobs/a",
        "POST /api/v1/jobs/a",
        "GET /api/v1/jobs/a/pause",
        "GET /api/v1/pause",
        "DELETE /api/v1/runs/a",
        "PUT /api/v1/runs/a/output",
        "GET /api/v1/control",
        "GET /api/v1/reload",
        "GET /api/v1/token",
        "POST /api/v1/feed",
        "POST /api/v1/nodes",
        "TRACE /api/v1/jobs",
        "OPTIONS /api/v1/jobs",
        "BREW /api/v1/jobs",
        "POST /health",
        "DELETE /",
        "PUT /metrics",
    ] {
        let refused = daemon.request(line);
        refused.assert_problem(405, "method_not_allowed");
        assert!(refused.header("allow").is_some(), "{line}");
    }
    // A header cannot override the method.
    let disguised = daemon.request("POST /api/v1/jobs/a\nX-HTTP-Method-Override: DELETE");
    disguised.assert_problem(405, "method_not_allowed");
    assert_eq!(daemon.get("/api/v1/jobs/a")["id"], "a");
}
