//! Request bodies that are too long, malformed, or of an unsupported media type.

use super::sandbox::Sandbox;

const LONG: usize = 1024 * 1024;

#[test]
fn unreadable_bodies_are_refused() {
    let sandbox = Sandbox::new("bodies");
    let daemon = sandbox.up();
    let request =
        |path: &str, kind: &str, body: &str| daemon.request(&format!("{path}\nContent-Type: {kind}\n\n{body}"));
    let deep = "[".repeat(100_000);
    let deep_map = "{\"a\":".repeat(100_000);
    for line in ["POST /api/v1/pause", "POST /api/v1/control", "POST /api/v1/reload", "POST /api/v1/link"] {
        for body in
            ["{", "[]", "\"x\"", "7", "{\"wy\": 1}", "{} {}", "\u{0}", "\u{feff}{}", "{'why': 1}", &deep, &deep_map]
        {
            request(line, "application/json", body).assert_problem(400, "bad_request");
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x", ""] {
            request(line, kind, "{}").assert_problem(415, "unsupported_media_type");
        }
        request(line, "application/yaml", "why: tea").assert_problem(415, "unsupported_media_type");
        daemon.request(&format!("{line}\n\n{{}}")).assert_problem(415, "unsupported_media_type");
    }
    let put = "PUT /api/v1/jobs/a";
    for body in ["{", "{\"program\": \"x\"", "program: x", &deep] {
        request(put, "application/json", body).assert_problem(400, "bad_request");
    }
    for body in ["", "[]", "x", "7", "{\"program\": \"x\", \"program\": \"y\"}", "{\"progam\": \"x\"}"] {
        let refused = request(put, "application/json", body);
        assert!(refused.status == 400 || refused.status == 422, "{body}: {}", refused.text());
    }
    let nested = "a: ".repeat(10_000);
    for body in ["program: [", "a: b: c", "- x", "program: *x", "program: x\nprogram: y", "\t\t:", &nested, &deep] {
        request(put, "application/yaml", body).assert_problem(422, "invalid");
    }
    request(put, "text/plain", "program: x").assert_problem(415, "unsupported_media_type");
    // Aliases that expand to more than any memory.
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, of) in "bcdefghijkl".chars().zip("abcdefghijk".chars()) {
        bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 9].join(", "));
    }
    request(put, "application/yaml", &bomb).assert_problem(422, "invalid");
    // Bytes that are not text.
    let mut wire = daemon.wire();
    let head =
        format!("{put}\nAuthorization: Bearer {}\nContent-Type: application/yaml\nContent-Length: 4", daemon.token);
    wire.send(&[&daemon.http(&head)[..], b"\xff\xfe\x00\x80"].concat());
    wire.reply().assert_problem(400, "bad_request");
    daemon.assert_well();
    assert_eq!(daemon.get("/api/v1/jobs")["jobs"].as_array().map(Vec::len), Some(0), "no job was created");
}

#[test]
fn oversized_bodies_are_refused() {
    let sandbox = Sandbox::new("bodies-long");
    let daemon = sandbox.up();
    let token = &daemon.token;
    let head = format!("POST /api/v1/pause\nAuthorization: Bearer {token}\nContent-Type: application/json");
    // The length is announced, so the server does not wait for the body.
    for length in ["1048577", "99999999999"] {
        let mut wire = daemon.wire();
        wire.send(&daemon.http(&format!("{head}\nContent-Length: {length}")));
        wire.reply().assert_problem(413, "too_large");
    }
    // A client that sends `Expect: 100-continue` gets the error at once.
    let mut wire = daemon.wire();
    wire.send(&daemon.http(&format!("{head}\nExpect: 100-continue\nContent-Length: 1048577")));
    wire.reply().assert_problem(413, "too_large");
    // The length is not announced, so the server reads up to the limit.
    let mut wire = daemon.wire();
    wire.send(&daemon.http(&format!("{head}\nTransfer-Encoding: chunked")));
    let piece = vec![b' '; 64 * 1024];
    for _ in 0..LONG / piece.len() + 1 {
        wire.send(format!("{:x}\r\n", piece.len()).as_bytes());
        wire.send(&piece);
        wire.send(b"\r\n");
    }
    wire.reply().assert_problem(413, "too_large");
    // A body of the maximum length is read and validated.
    let why = "x".repeat(LONG - r#"{"why": ""}"#.len());
    daemon.send("POST /api/v1/pause", &format!("{{\"why\": \"{why}\"}}")).assert_problem(422, "invalid");
    daemon.send("POST /api/v1/pause", &format!("{{\"why\": \"{why}x\"}}")).assert_problem(413, "too_large");
    daemon.assert_well();
    assert_eq!(daemon.get("/api/v1/jobs")["pause"], serde_json::Value::Null, "nothing was paused");
}
