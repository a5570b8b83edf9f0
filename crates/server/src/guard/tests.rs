//! Which requests the guard accepts and which it rejects.

use hyper::body::Body as _;

use super::*;
use crate::testing::with_rig;

#[test]
fn only_own_host_names_are_accepted() {
    let ours = |address: &str, host: &str| {
        AllowedHosts::new(address.parse().expect("an address"), &["Cron.example".to_owned()]).is_ours(host)
    };
    for host in ["127.0.0.1:2766", "localhost:2766", "LOCALHOST:2766", "[::1]:2766", "cron.example", "cron.example:443"]
    {
        assert!(ours("127.0.0.1:2766", host), "{host}");
    }
    let foreign = [
        "",
        "127.0.0.1",
        "localhost",
        "localhost:80",
        "evil.example:2766",
        "10.0.0.1:2766",
        "localhost:2766:2766",
        "localhost:x",
        "127.0.0.1.evil.example:2766",
        "[::1]",
        "::1:2766x",
        "0.0.0.0:2766",
        "evil.example@localhost:2766",
    ];
    for host in foreign {
        assert!(!ours("127.0.0.1:2766", host), "{host}");
    }
    assert!(ours("0.0.0.0:2766", "10.0.0.1:2766") && ours("0.0.0.0:2766", "[fd00::1]:2766"));
    assert!(!ours("0.0.0.0:2766", "evil.example:2766"), "a foreign name can resolve to our address, an address cannot");
    assert!(ours("10.0.0.1:80", "10.0.0.1") && !ours("10.0.0.1:80", "10.0.0.2"));
}

#[test]
fn requests_without_valid_credentials_are_rejected() {
    with_rig("no-token", async |rig| {
        let wrong = "0".repeat(64);
        for (line, headers) in [
            ("GET /api/v1/jobs", String::new()),
            ("GET /api/v1/jobs", format!("Authorization: Bearer {wrong}")),
            ("GET /api/v1/jobs", format!("Authorization: Basic {}", rig.token)),
            ("GET /api/v1/jobs", "Authorization: Bearer".to_owned()),
            ("GET /api/v1/jobs", "Authorization: Bearer 9999999999.00".to_owned()),
            ("GET /api/v1/jobs", format!("Cookie: cronhold_session={}", rig.token)),
            ("GET /api/v1/no/such/path", String::new()),
            ("POST /api/v1/token", String::new()),
            ("GET /metrics", String::new()),
            ("GET /openapi.json", String::new()),
        ] {
            let got = rig.raw(line, &headers).await;
            assert_eq!(got.problem(), (401, "unauthorized".to_owned()), "{line} {headers}");
            assert_eq!(got.headers["www-authenticate"], "Bearer");
        }
        for open in ["GET /health", "GET /ready"] {
            assert_eq!(rig.raw(open, "").await.status, 200, "{open}");
        }
    });
}

#[test]
fn foreign_origins_and_hosts_are_rejected() {
    with_rig("origins", async |rig| {
        for headers in [
            "Origin: http://evil.example",
            "Origin: null",
            "Origin: http://127.0.0.1:2767",
            "Origin: http://localhost:2766",
            "Origin: ftp://127.0.0.1:2766",
            "Origin: http://127.0.0.1:2766\nOrigin: http://evil.example",
            "Host: evil.example:2766",
            "Host: evil.example:2766\nOrigin: http://evil.example:2766",
        ] {
            for line in ["GET /api/v1/jobs", "POST /api/v1/pause", "GET /health"] {
                let got = rig.request(line, headers).await;
                assert_eq!(got.problem(), (403, "forbidden".to_owned()), "{line} {headers}");
            }
        }
        for headers in ["Origin: http://127.0.0.1:2766", "Host: cron.example\nOrigin: https://cron.example", "X: y"] {
            assert_eq!(rig.request("GET /api/v1/jobs", headers).await.status, 200, "{headers}");
        }
        assert_eq!(rig.request("GET http://evil.example:2766/api/v1/jobs", "").await.problem().0, 403);
        let twice = rig.request("GET /health", "Host: 127.0.0.1:2766\nHost: 127.0.0.1:2766").await;
        assert_eq!(twice.problem().0, 400);
    });
}

#[test]
fn browser_signs_in_once_with_a_link() {
    with_rig("link", async |rig| {
        let url = rig.request("POST /api/v1/link", "").await.json()["url"].as_str().expect("a link").to_owned();
        let code = url.strip_prefix("http://127.0.0.1:2766/enter#").expect("a link to the host of the request");
        let body = format!(r#"{{"code": "{code}"}}"#);
        for line in ["HEAD /enter", "GET /enter"] {
            assert_eq!(rig.raw(line, "").await.status, 200, "opening the page does not use the code up");
        }
        let signed_in = rig.post_openly("/api/v1/session", &body).await;
        assert!(!signed_in.headers.contains_key("set-cookie"), "a cookie would be sent to every port of the host");
        let session = signed_in.json()["session"].as_str().expect("a session").to_owned();
        assert_eq!(rig.post_openly("/api/v1/session", &body).await.problem().0, 401, "a link is valid once");

        let by_session = async |line: &str| rig.raw(line, &format!("Authorization: Bearer {session}")).await.status;
        assert_eq!(by_session("GET /api/v1/jobs").await, 200);
        assert_eq!(by_session("POST /api/v1/pause").await, 204);
        assert_eq!(by_session("POST /api/v1/resume").await, 204);
        for line in ["POST /api/v1/link", "POST /api/v1/token"] {
            assert_eq!(by_session(line).await, 403, "{line}");
        }
        let by_cookie = rig.raw("GET /api/v1/jobs", &format!("Cookie: cronhold_session={session}")).await;
        assert_eq!(by_cookie.status, 401);

        let renewed = rig.request("POST /api/v1/token", "").await.json()["token"].as_str().expect("a token").to_owned();
        assert_eq!(by_session("GET /api/v1/jobs").await, 401);
        assert_eq!(rig.request("GET /api/v1/jobs", "").await.status, 401, "the old token is invalid");
        assert_eq!(rig.raw("GET /api/v1/jobs", &format!("Authorization: Bearer {renewed}")).await.status, 200);
    });
}

/// A local connection needs no token, and keeps its streams when the token is renewed.
#[test]
fn renewed_token_ends_open_streams() {
    with_rig("renewed", async |rig| {
        let mut by_token = rig.open("GET /api/v1/feed", &format!("Authorization: Bearer {}", rig.token), None).await;
        let mut local = rig.open("GET /api/v1/feed", "", Some(Arc::new(ClientConnection::local(None)))).await;
        for stream in [&mut by_token, &mut local] {
            assert!(next_part(stream).await.is_some_and(|part| part.is_ok()));
        }
        assert_eq!(rig.request("POST /api/v1/token", "").await.status, 200);
        assert!(next_part(&mut by_token).await.is_some_and(|part| part.is_err()), "not a regular end");
        assert!(next_part(&mut by_token).await.is_none());
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(20), next_part(&mut local)).await;
        assert!(waiting.is_err(), "the local stream goes on");
    });
}

async fn next_part(body: &mut axum::body::Body) -> Option<Result<(), axum::Error>> {
    let frame = std::future::poll_fn(|context| std::pin::Pin::new(&mut *body).poll_frame(context)).await;
    frame.map(|frame| frame.map(|_| ()))
}

#[test]
fn malformed_requests_are_rejected() {
    with_rig("tricks", async |rig| {
        for (path, status) in [
            ("/api/v1/jobs/%2e%2e", 400),
            ("/api/v1/jobs/..", 400),
            ("/api/v1/../v1/jobs", 400),
            ("/api/v1/jobs/a%2F..%2Fb", 400),
            ("/api/v1/jobs/%2Fa", 400),
            ("/api/v1/jobs/a%00", 400),
            ("/api/v1/jobs/%ff", 400),
            ("/api/v1/jobs/%zz", 400),
            ("/api/v1/jobs/%2", 400),
            ("/page/..%2f..%2fetc%2fpasswd", 404),
            ("/page/%2e%2e/app.rs", 400),
            ("//api/v1/jobs", 404),
            ("/api/v1//jobs", 404),
            ("/api/v1/jobs/", 404),
            ("/API/v1/jobs", 404),
            ("/api/v1/jobs/a%23b", 400),
            ("/api/v1/jobs?limit=x", 400),
            ("/api/v1/jobs?limit=-1", 400),
            ("/api/v1/jobs?nothing=1", 400),
        ] {
            assert_eq!(rig.request(&format!("GET {path}"), "").await.problem().0, status, "{path}");
        }
        let long = rig.request(&format!("GET /api/v1/jobs/{}", "a".repeat(URI_MAX)), "").await;
        assert_eq!(long.problem(), (413, "too_large".to_owned()));
        assert_eq!(rig.request(&format!("GET /api/v1/jobs/{}", "a".repeat(201)), "").await.problem().0, 400);
        assert_eq!(rig.request("DELETE /api/v1/jobs", "").await.problem(), (405, "method_not_allowed".to_owned()));
        assert_eq!(rig.request("BREW /api/v1/jobs", "").await.problem().0, 405);
        assert_eq!(
            rig.request("GET /api/v1/jobs", &format!("X-Cronhold-User: {}", "x".repeat(65))).await.problem().0,
            400
        );
    });
}

#[test]
fn bodies_have_a_maximum_length_and_a_known_type() {
    with_rig("bodies", async |rig| {
        let pause = "POST /api/v1/pause";
        for (headers, body, expected) in [
            ("Content-Type: application/json", "{", (400, "bad_request")),
            ("Content-Type: application/json", "[]", (400, "bad_request")),
            ("Content-Type: application/json", "{\"why\": 1}", (400, "bad_request")),
            ("Content-Type: application/json", "{\"wy\": \"tea\"}", (400, "bad_request")),
            ("Content-Type: application/json", "\u{0}", (400, "bad_request")),
            ("Content-Length: 5\nContent-Type: text/plain", "hello", (415, "unsupported_media_type")),
            ("Content-Length: 5", "hello", (415, "unsupported_media_type")),
            ("Content-Type: application/x-www-form-urlencoded", "why=tea", (415, "unsupported_media_type")),
            ("Content-Type: application/yaml", "why: tea", (415, "unsupported_media_type")),
            ("Content-Length: 1048577\nContent-Type: application/json", "{}", (413, "too_large")),
        ] {
            let got = rig.request(pause, &format!("{headers}\n\n{body}")).await;
            assert_eq!(got.problem(), (expected.0, expected.1.to_owned()), "{headers} {body}");
        }
        // A long body without a `Content-Length` header.
        let long = format!("{{\"why\": \"{}\"}}", "x".repeat(BODY_MAX));
        assert_eq!(rig.send(pause, &long).await.problem(), (413, "too_large".to_owned()));
        let deep = "[".repeat(100_000);
        assert_eq!(rig.send(pause, &deep).await.problem().0, 400);
        assert_eq!(rig.send(pause, "{\"why\": \"tea\"}").await.status, 204);
    });
}

#[test]
fn program_of_a_run_in_the_store_has_its_role_and_name() {
    with_rig("programs", async |rig| {
        rig.send("PUT /api/v1/jobs/a", r#"{"program": "true"}"#).await;
        let run = rig.send("POST /api/v1/jobs/a/runs", "{}").await.json()["id"].as_str().map(RunId::parse);
        let run = run.expect("a run").expect("an id");
        let request = async |line: &str, run| {
            let from = Arc::new(ClientConnection::local(Some(run)));
            rig.by(line, "Content-Type: application/json\n\n{}", from).await
        };
        assert_eq!(request("GET /api/v1/jobs", run).await.status, 200);
        assert_eq!(request("POST /api/v1/pause", run).await.status, 204);
        assert_eq!(rig.request("GET /api/v1/jobs/a", "").await.json()["pause"]["by"], "run a#1");
        for line in ["DELETE /api/v1/jobs/a", "POST /api/v1/link"] {
            assert_eq!(request(line, run).await.problem(), (403, "forbidden".to_owned()), "{line}");
        }
        // The program of another daemon is a process like any other.
        assert_eq!(request("DELETE /api/v1/jobs/a", RunId::MIN).await.status, 204);
    });
}
