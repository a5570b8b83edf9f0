//! Connections: HTTP/1.0, many at once, and connections that end in the middle of a request.

use super::sandbox::Sandbox;
use super::wire::Wire;

/// More connections than the server handles at once, and few enough for the backlog of the socket.
const MANY: usize = 600;

#[test]
fn http_1_0_requests_are_answered() {
    let sandbox = Sandbox::new("http-1-0");
    let daemon = sandbox.up();
    let mut wire = daemon.wire();
    wire.send(format!("GET /health HTTP/1.0\r\nHost: {}\r\n\r\n", daemon.address).as_bytes());
    let reply = wire.reply();
    assert_eq!((reply.status, &reply.json()["ok"]), (200, &true.into()));
    wire.assert_over();
    let mut wire = daemon.wire();
    wire.send(&daemon.http("GET /health\nConnection: close"));
    assert_eq!(wire.reply().status, 200);
    wire.assert_over();
}

/// A client that holds idle connections cannot block others, and does not end connections of clients with the token.
#[test]
fn idle_connections_do_not_block_others() {
    let sandbox = Sandbox::new("connections");
    let daemon = sandbox.up();
    let mut known = daemon.wire();
    let jobs = daemon.http(&format!("GET /api/v1/jobs\nAuthorization: Bearer {}", daemon.token));
    known.send(&jobs);
    assert_eq!(known.reply().status, 200);
    let idle: Vec<Wire> = (0..MANY).map(|_| daemon.wire()).collect();
    let mut next = daemon.wire();
    next.send(&daemon.http("GET /health"));
    assert_eq!(next.reply().status, 200);
    known.send(&jobs);
    assert_eq!(known.reply().status, 200);
    drop(idle);
    // A part of a request, and then the end of the connection.
    for part in
        ["GET /hea", "GET /health HTTP/1.1\r\nHost: ", "POST /api/v1/pause HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"]
    {
        let mut wire = daemon.wire();
        wire.send(part.as_bytes());
        wire.finish();
        if let Some(reply) = wire.try_reply() {
            assert!((400..500).contains(&reply.status), "{part}: {}", reply.status);
        }
    }
    // Many clients that request the feed and do not read it.
    let feed = daemon.http(&format!("GET /api/v1/feed\nAuthorization: Bearer {}", daemon.token));
    let mut unread: Vec<Wire> = (0..50).map(|_| daemon.wire()).collect();
    unread.iter_mut().for_each(|wire| wire.send(&feed));
    daemon.assert_well();
    drop(unread);
    daemon.assert_well();
    daemon.stop();
}
