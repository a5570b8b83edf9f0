//! Bodies that are too long, broken, or of another kind.

use super::place::Place;

const LONG: usize = 1024 * 1024;

#[test]
fn unreadable_bodies_are_refused() {
    let place = Place::new("bodies");
    let daemon = place.up();
    let ask = |path: &str, kind: &str, body: &str| daemon.ask(&format!("{path}\nContent-Type: {kind}\n\n{body}"));
    let deep = "[".repeat(100_000);
    let deep_map = "{\"a\":".repeat(100_000);
    for line in ["POST /api/v1/pause", "POST /api/v1/control", "POST /api/v1/reload", "POST /api/v1/link"] {
        for body in
            ["{", "[]", "\"x\"", "7", "{\"wy\": 1}", "{} {}", "\u{0}", "\u{feff}{}", "{'why': 1}", &deep, &deep_map]
        {
            ask(line, "application/json", body).assert_problem(400, "bad_request");
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x", ""] {
            ask(line, kind, "{}").assert_problem(415, "unsupported_media_type");
        }
        ask(line, "application/yaml", "why: tea").assert_problem(415, "unsupported_media_type");
        daemon.ask(&format!("{line}\n\n{{}}")).assert_problem(415, "unsupported_media_type");
    }
    let put = "PUT /api/v1/jobs/a";
    for body in ["{", "{\"program\": \"x\"", "program: x", &deep] {
        ask(put, "application/json", body).assert_problem(400, "bad_request");
    }
    for body in ["", "[]", "x", "7", "{\"program\": \"x\", \"program\": \"y\"}", "{\"progam\": \"x\"}"] {
        let refused = ask(put, "application/json", body);
        assert!(refused.status == 400 || refused.status == 422, "{body}: {}", refused.text());
    }
    let nested = "a: ".repeat(10_000);
    for body in ["program: [", "a: b: c", "- x", "program: *x", "program: x\nprogram: y", "\t\t:", &nested, &deep] {
        ask(put, "application/yaml", body).assert_problem(422, "invalid");
    }
    ask(put, "text/plain", "program: x").assert_problem(415, "unsupported_media_type");
    // Aliases that grow to more than anybody has room for.
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, of) in "bcdefghijkl".chars().zip("abcdefghijk".chars()) {
        bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 9].join(", "));
    }
    ask(put, "application/yaml", &bomb).assert_problem(422, "invalid");
    // Bytes that are no text.
    let mut wire = daemon.wire();
    let head =
        format!("{put}\nAuthorization: Bearer {}\nContent-Type: application/yaml\nContent-Length: 4", daemon.token);
    wire.send(&[&daemon.http(&head)[..], b"\xff\xfe\x00\x80"].concat());
    wire.reply().assert_problem(400, "bad_request");
    daemon.assert_well();
    assert_eq!(daemon.get("/api/v1/jobs")["jobs"].as_array().map(Vec::len), Some(0), "nothing came of all that");
}

#[test]
fn oversized_bodies_are_refused() {
    let place = Place::new("bodies-long");
    let daemon = place.up();
    let token = &daemon.token;
    let head = format!("POST /api/v1/pause\nAuthorization: Bearer {token}\nContent-Type: application/json");
    // Announced: nothing of it is waited for.
    for length in ["1048577", "99999999999"] {
        let mut wire = daemon.wire();
        wire.send(&daemon.http(&format!("{head}\nContent-Length: {length}")));
        wire.reply().assert_problem(413, "too_large");
    }
    // Whoever waits for leave to send it does not get it.
    let mut wire = daemon.wire();
    wire.send(&daemon.http(&format!("{head}\nExpect: 100-continue\nContent-Length: 1048577")));
    wire.reply().assert_problem(413, "too_large");
    // Not announced: it is read up to where it is too long.
    let mut wire = daemon.wire();
    wire.send(&daemon.http(&format!("{head}\nTransfer-Encoding: chunked")));
    let piece = vec![b' '; 64 * 1024];
    for _ in 0..LONG / piece.len() + 1 {
        wire.send(format!("{:x}\r\n", piece.len()).as_bytes());
        wire.send(&piece);
        wire.send(b"\r\n");
    }
    wire.reply().assert_problem(413, "too_large");
    // As long as one may be, and not longer, it is read: then what it says counts.
    let why = "x".repeat(LONG - r#"{"why": ""}"#.len());
    daemon.send("POST /api/v1/pause", &format!("{{\"why\": \"{why}\"}}")).assert_problem(422, "invalid");
    daemon.send("POST /api/v1/pause", &format!("{{\"why\": \"{why}x\"}}")).assert_problem(413, "too_large");
    daemon.assert_well();
    assert_eq!(daemon.get("/api/v1/jobs")["pause"], serde_json::Value::Null, "nothing was paused");
}
