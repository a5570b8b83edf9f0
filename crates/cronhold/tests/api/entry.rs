//! Authentication: by the token in its file, or by a link that works once.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::place::{Daemon, Place};

/// The session of a browser that opens a link.
fn enter(daemon: &Daemon) -> String {
    let link = daemon.request("POST /api/v1/link").json()["url"].as_str().expect("a link").to_owned();
    let path = link
        .strip_prefix(&format!("http://{}", daemon.address))
        .expect("a link to the address of the request")
        .to_owned();
    let entered = daemon.open(&format!("GET {path}"));
    assert_eq!((entered.status, entered.header("location")), (303, Some("/")));
    let cookie = entered.header("set-cookie").expect("a session").to_owned();
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    daemon.open(&format!("GET {path}")).assert_problem(401, "unauthorized");
    cookie.split(';').next().expect("a pair").to_owned()
}

#[test]
fn requests_without_the_token_are_refused() {
    let place = Place::new("entry");
    let daemon = place.up();
    for file in ["data/token", "data/address"] {
        let mode = fs::metadata(place.path(file)).expect(file).permissions().mode();
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
            format!("Cookie: cronhold_session=9999999999.{token}"),
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

#[test]
fn session_cookie_is_accepted_only_from_our_page() {
    let place = Place::new("entry-link");
    let daemon = place.up();
    let session = enter(&daemon);
    let by_cookie = |line: &str, header: &str| daemon.open(&format!("{line}\nCookie: x=y; {session}\n{header}"));
    let own = format!("Origin: http://{}", daemon.address);
    assert_eq!(by_cookie("GET /api/v1/jobs", "").status, 200);
    assert_eq!(by_cookie("GET /api/v1/jobs", "Sec-Fetch-Site: same-origin").status, 200);
    for header in [
        "",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Sec-Fetch-Site: none",
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        &format!("{own}\nSec-Fetch-Site: cross-site"),
    ] {
        by_cookie("POST /api/v1/pause", header).assert_problem(403, "forbidden");
    }
    assert_eq!(daemon.get("/api/v1/jobs")["pause"], serde_json::Value::Null, "nothing was paused");
    for header in ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"] {
        by_cookie("GET /api/v1/jobs", header).assert_problem(403, "forbidden");
    }
    assert_eq!(by_cookie("POST /api/v1/pause", &own).status, 204);
    assert_eq!(daemon.get("/api/v1/jobs")["pause"]["by"], "page");
    assert_eq!(by_cookie("POST /api/v1/resume", "Sec-Fetch-Site: same-origin").status, 204);
    daemon.open("GET /enter?once=0123").assert_problem(401, "unauthorized");
    daemon.open("GET /enter").assert_problem(400, "bad_request");
}

#[test]
fn renewed_token_invalidates_sessions_and_links() {
    let place = Place::new("entry-renewal");
    let daemon = place.up();
    let session = enter(&daemon);
    let link = daemon.request("POST /api/v1/link").json()["url"].as_str().expect("a link").to_owned();
    let path = link.rsplit_once('/').expect("a path").1;
    let jobs = |header: &str| daemon.open(&format!("GET /api/v1/jobs\n{header}"));
    let cookie = format!("Cookie: {session}");
    assert_eq!(jobs(&cookie).status, 200);
    let renewed = daemon.request("POST /api/v1/token").json()["token"].as_str().expect("a token").to_owned();
    jobs(&cookie).assert_problem(401, "unauthorized");
    jobs(&format!("Authorization: Bearer {}", daemon.token)).assert_problem(401, "unauthorized");
    daemon.open(&format!("GET /{path}")).assert_problem(401, "unauthorized");
    let by_token = format!("Authorization: Bearer {renewed}");
    assert_eq!(jobs(&by_token).status, 200);
    let file = place.path("data/token");
    assert_eq!(fs::read_to_string(&file).expect("there").trim(), renewed);
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);

    // Sessions survive a restart, as the token does.
    daemon.kill();
    let daemon = place.up();
    let session = enter(&daemon);
    daemon.stop();
    let daemon = place.up();
    assert_eq!(daemon.open(&format!("GET /api/v1/jobs\nCookie: {session}")).status, 200);
    assert_eq!(daemon.token, renewed);
}
