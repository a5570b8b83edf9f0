//! Connections themselves: old ones, many of them, and those that end in the middle.

use super::place::Place;
use super::wire::Wire;

/// More than are served at once, and few enough that the system lets them wait.
const MANY: usize = 600;

#[test]
fn http_1_0_requests_are_answered() {
    let place = Place::new("http-1-0");
    let daemon = place.up();
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

/// Who holds connections and says nothing cannot shut others out for good, and the node goes on meanwhile.
#[test]
fn idle_connections_do_not_block_others_for_good() {
    let place = Place::new("connections");
    let daemon = place.up();
    let idle: Vec<Wire> = (0..MANY).map(|_| daemon.wire()).collect();
    let mut next = daemon.wire();
    next.send(&daemon.http("GET /health"));
    drop(idle);
    assert_eq!(next.reply().status, 200);
    // Half of a request, and then nothing more.
    for said in
        ["GET /hea", "GET /health HTTP/1.1\r\nHost: ", "POST /api/v1/pause HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"]
    {
        let mut wire = daemon.wire();
        wire.send(said.as_bytes());
        wire.finish();
        if let Some(reply) = wire.try_reply() {
            assert!((400..500).contains(&reply.status), "{said}: {}", reply.status);
        }
    }
    // Many who ask for much and do not listen.
    let feed = daemon.http(&format!("GET /api/v1/feed\nAuthorization: Bearer {}", daemon.token));
    let mut deaf: Vec<Wire> = (0..50).map(|_| daemon.wire()).collect();
    deaf.iter_mut().for_each(|wire| wire.send(&feed));
    daemon.assert_well();
    drop(deaf);
    daemon.assert_well();
    daemon.stop();
}
