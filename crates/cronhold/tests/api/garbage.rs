//! Malformed requests. Each is refused, and the daemon continues.

use super::sandbox::Sandbox;

#[test]
fn malformed_requests_are_refused() {
    let sandbox = Sandbox::new("garbage");
    let daemon = sandbox.up();
    let address = &daemon.address;
    let many = "X: y\r\n".repeat(100);
    let long = format!("X: {}\r\n", "y".repeat(300_000));
    let path = "a".repeat(70_000);
    let get = |more: &str| format!("GET /health HTTP/1.1\r\nHost: {address}\r\n{more}\r\n");
    for (request, statuses) in [
        ("nonsense\r\n\r\n".to_owned(), &[400][..]),
        ("\0\0\0\0\r\n\r\n".to_owned(), &[400]),
        ("GET\r\n\r\n".to_owned(), &[400]),
        ("GET /health\r\n\r\n".to_owned(), &[400]),
        ("GET /a /b HTTP/1.1\r\n\r\n".to_owned(), &[400]),
        ("GET health HTTP/1.1\r\n\r\n".to_owned(), &[400]),
        ("GET /health HTTP/9.9\r\n\r\n".to_owned(), &[400, 505]),
        // The preface of HTTP/2: the client would not understand a response.
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), &[]),
        ("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}\r\n\r\n".to_owned(), &[400]),
        ("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n".to_owned(), &[400, 403]),
        (format!("OPTIONS * HTTP/1.1\r\nHost: {address}\r\n\r\n"), &[400, 401, 405]),
        ("GET /health HTTP/1.1\r\n\r\n".to_owned(), &[400]),
        ("GET /health HTTP/1.0\r\n\r\n".to_owned(), &[400]),
        (get("no colon\r\n"), &[400]),
        (get(" : y\r\n"), &[400]),
        (get("X: a\0b\r\n"), &[400]),
        (get("Content-Length: x\r\n"), &[400]),
        (get("Content-Length: -1\r\n"), &[400]),
        (get("Content-Length: 1\r\nContent-Length: 2\r\n"), &[400]),
        (get("Transfer-Encoding: gzip\r\n"), &[400]),
        (get(&many), &[431]),
        (get(&long), &[431]),
        (format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\n\r\n"), &[413, 414, 431]),
        // Two contradicting lengths of the body, as in request smuggling.
        (get("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n").replace("GET", "POST") + "0\r\n\r\n", &[400, 415]),
    ] {
        let mut wire = daemon.wire();
        wire.send(request.as_bytes());
        let shown: String = request.chars().take(80).collect();
        // A client that is still sending when it is refused may not get the response.
        let Some(reply) = wire.try_reply() else {
            assert!(statuses.is_empty() || request.len() > 60_000, "{shown:?} was not answered");
            continue;
        };
        assert!(statuses.contains(&reply.status), "{shown:?}: {} {}", reply.status, reply.text());
    }
    daemon.assert_well();
}

/// Garbage after a valid request on the same connection does not change its response, and is not a second request.
#[test]
fn garbage_after_a_request_closes_the_connection() {
    let sandbox = Sandbox::new("pipeline");
    let daemon = sandbox.up();
    let get = daemon.http("GET /health");
    // Several valid requests at once are answered in order.
    let mut wire = daemon.wire();
    wire.send(&[&get[..], &daemon.http("GET /nothing"), &get].concat());
    assert_eq!([wire.reply().status, wire.reply().status, wire.reply().status], [200, 401, 200]);
    wire.send(&[&get[..], b"\x01garbage\r\n\r\n"].concat());
    assert_eq!((wire.reply().status, wire.reply().status), (200, 400));
    wire.assert_over();

    // After a refusal, the connection is usable for the next request.
    let mut wire = daemon.wire();
    let token = &daemon.token;
    let bad = format!("POST /api/v1/pause\nAuthorization: Bearer {token}\nContent-Type: application/json\n\n{{");
    wire.send(&[&daemon.http(&bad)[..], &get].concat());
    assert_eq!((wire.reply().status, wire.reply().status), (400, 200));
    // A body that the server does not read must not be parsed as a request.
    let inner = format!("POST /api/v1/pause\nAuthorization: Bearer {token}");
    let inner = String::from_utf8(daemon.http(&inner)).expect("a text");
    let outer = format!("POST /nothing\nContent-Type: application/json\n\n{inner}");
    wire.send(&[&daemon.http(&outer)[..], &get].concat());
    assert_eq!(wire.reply().status, 401);
    if let Some(next) = wire.try_reply() {
        assert_eq!(next.status, 200);
    }
    assert_eq!(daemon.get("/api/v1/jobs")["pause"], serde_json::Value::Null, "nothing was paused");
}
