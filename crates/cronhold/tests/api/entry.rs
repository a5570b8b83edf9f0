//! Authentication: by the token in its file, or by a link that works once.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::sandbox::{Daemon, Sandbox};
use super::wire::{Reply, Wire};

/// The code of a new link.
fn code(daemon: &Daemon) -> String {
    let link = daemon.request("POST /api/v1/link").json()["url"].as_str().expect("a link").to_owned();
    let start = format!("http://{}/enter#", daemon.address);
    link.strip_prefix(&start).expect("a link to the address of the request").to_owned()
}

fn sign_in(daemon: &Daemon, code: &str) -> Reply {
    daemon.open(&format!("POST /api/v1/session\nContent-Type: application/json\n\n{{\"code\": \"{code}\"}}"))
}

/// The session of a browser that opens a link.
fn enter(daemon: &Daemon) -> String {
    let code = code(daemon);
    for line in ["HEAD /enter", "GET /enter"] {
        let mut wire = daemon.wire();
        wire.send(&daemon.http(line));
        assert_eq!(wire.head().status, 200, "opening the page does not use the code up");
    }
    let entered = sign_in(daemon, &code);
    assert_eq!((entered.status, entered.header("set-cookie")), (200, None));
    sign_in(daemon, &code).assert_problem(401, "unauthorized");
    entered.json()["session"].as_str().expect("a session").to_owned()
}

#[test]
fn requests_without_the_token_are_refused() {
    let sandbox = Sandbox::new("entry");
    let daemon = sandbox.up();
    for file in ["data/token", "data/address"] {
        let mode = fs::metadata(sandbox.path(file)).expect(file).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let token = &daemon.token;
    let wrong = token.chars().rev().collect::<String>();
    for path in ["/api/v1/jobs", "/api/v1/feed", "/api/v1/no/such/path", "/metrics", "/openapi.json"] {
        for header in [
            "X: y".to_owned(),
            format!("Authorization: Bearer {wrong}"),
            format!("Authorization: Bearer {token}x"),
            format!("Authorization: Bearer {}", &token[1..]),
            format!("Authorization: Basic {token}"),
            format!("Authorization: {token}"),
            "Authorization: Bearer".to_owned(),
            format!("Cookie: cronhold_session={token}"),
            format!("Authorization: Bearer 9999999999.{token}"),
            format!("X-Api-Key: {token}"),
        ] {
            let refused = daemon.open(&format!("GET {path}\n{header}"));
            refused.assert_problem(401, "unauthorized");
            assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        }
        // URLs end up in logs and histories, so a token in a URL is not accepted.
        for query in [format!("token={token}"), format!("access_token={token}")] {
            daemon.open(&format!("GET {path}?{query}")).assert_problem(401, "unauthorized");
        }
    }
    for line in ["POST /api/v1/token", "POST /api/v1/link", "DELETE /api/v1/jobs/a", "POST /api/v1/pause"] {
        daemon.open(line).assert_problem(401, "unauthorized");
    }
    assert_eq!(daemon.get("/api/v1/jobs")["pause"], serde_json::Value::Null);
    for open in ["/health", "/ready", "/"] {
        assert_eq!(daemon.open(&format!("GET {open}")).status, 200, "{open}");
    }
    let case = daemon.open(&format!("GET /api/v1/jobs\nauthorization: bearer {token}"));
    assert_eq!(case.status, 200, "names of headers and schemes are case-insensitive");
}

/// Browsers send cookies to every port of a host, so a cookie must open nothing.
#[test]
fn session_is_accepted_only_in_its_header_and_creates_no_credentials() {
    let sandbox = Sandbox::new("entry-link");
    let daemon = sandbox.up();
    let session = enter(&daemon);
    let by_session =
        |line: &str, header: &str| daemon.open(&format!("{line}\nAuthorization: Bearer {session}\n{header}"));
    assert_eq!(by_session("GET /api/v1/jobs", "").status, 200);
    assert_eq!(by_session("POST /api/v1/pause", "").status, 204);
    assert_eq!(daemon.get("/api/v1/jobs")["pause"]["by"], "page");
    assert_eq!(by_session("POST /api/v1/resume", &format!("Origin: http://{}", daemon.address)).status, 204);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        by_session("POST /api/v1/pause", &format!("Origin: {origin}")).assert_problem(403, "forbidden");
    }
    for line in ["POST /api/v1/link", "POST /api/v1/token"] {
        by_session(line, "").assert_problem(403, "forbidden");
    }
    let cookie = format!("Cookie: cronhold_session={session}\nOrigin: http://{}", daemon.address);
    for line in ["GET /api/v1/jobs", "GET /api/v1/feed", "POST /api/v1/pause", "POST /api/v1/token"] {
        daemon.open(&format!("{line}\n{cookie}")).assert_problem(401, "unauthorized");
    }
    assert_eq!(daemon.get("/api/v1/jobs")["pause"], serde_json::Value::Null, "nothing was paused");
    sign_in(&daemon, "0123").assert_problem(401, "unauthorized");
    daemon.open("POST /api/v1/session").assert_problem(400, "bad_request");
}

#[test]
fn renewed_token_invalidates_sessions_and_links() {
    let sandbox = Sandbox::new("entry-renewal");
    let daemon = sandbox.up();
    let session = enter(&daemon);
    let code = code(&daemon);
    let jobs = |header: &str| daemon.open(&format!("GET /api/v1/jobs\n{header}"));
    let by_session = format!("Authorization: Bearer {session}");
    assert_eq!(jobs(&by_session).status, 200);
    let mut feeds = [&session, &daemon.token].map(|bearer| {
        let mut wire = daemon.wire();
        wire.send(&daemon.http(&format!("GET /api/v1/feed\nAuthorization: Bearer {bearer}")));
        assert_eq!(wire.head().status, 200);
        wire
    });
    let renewed = daemon.request("POST /api/v1/token").json()["token"].as_str().expect("a token").to_owned();
    feeds.iter_mut().for_each(Wire::assert_cut);
    jobs(&by_session).assert_problem(401, "unauthorized");
    jobs(&format!("Authorization: Bearer {}", daemon.token)).assert_problem(401, "unauthorized");
    sign_in(&daemon, &code).assert_problem(401, "unauthorized");
    let by_token = format!("Authorization: Bearer {renewed}");
    assert_eq!(jobs(&by_token).status, 200);
    let file = sandbox.path("data/token");
    assert_eq!(fs::read_to_string(&file).expect("there").trim(), renewed);
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);

    // Sessions survive a restart, as the token does.
    daemon.kill();
    let daemon = sandbox.up();
    let session = enter(&daemon);
    daemon.stop();
    let daemon = sandbox.up();
    assert_eq!(daemon.open(&format!("GET /api/v1/jobs\nAuthorization: Bearer {session}")).status, 200);
    assert_eq!(daemon.token, renewed);
}
