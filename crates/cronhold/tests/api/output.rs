//! The output of programs: as a whole, in ranges, and while they write it.

use std::fs;

use super::sandbox::Sandbox;

#[test]
fn output_is_sent_whole_and_in_ranges() {
    let sandbox = Sandbox::new("output");
    sandbox.put_file("say", "program: [printf, 'hello\\000 world']\nschedule: triggered\n");
    let daemon = sandbox.up();
    let id = daemon.run("say")["id"].as_str().expect("an id").to_owned();
    const ALL: &str = "hello\0 world";
    for (query, range, status, body, part) in [
        ("", "", 200, ALL, ""),
        ("?from=7", "", 200, "world", ""),
        ("?from=12", "", 200, "", ""),
        ("?from=99", "", 200, "", ""),
        ("", "bytes=0-4", 206, "hello", "bytes 0-4/12"),
        ("", "bytes=7-", 206, "world", "bytes 7-11/12"),
        ("", "bytes=7-99", 206, "world", "bytes 7-11/12"),
        ("", "bytes=-5", 206, "world", "bytes 7-11/12"),
        ("", "bytes=-99", 206, ALL, "bytes 0-11/12"),
        ("", "bytes=12-", 416, "", "bytes */12"),
        ("", "bytes=-0", 416, "", "bytes */12"),
        ("", "bytes=4-2", 200, ALL, ""),
        ("", "bytes=0-0,2-3", 200, ALL, ""),
        ("", "lines=1-2", 200, ALL, ""),
    ] {
        let range = if range.is_empty() { String::new() } else { format!("\nRange: {range}") };
        let reply = daemon.request(&format!("GET /api/v1/runs/say/output{query}{range}"));
        assert_eq!((reply.status, reply.header("content-range").unwrap_or_default()), (status, part), "{query}{range}");
        if status == 416 {
            assert_eq!(reply.header("content-type"), Some("application/problem+json"));
            continue;
        }
        assert_eq!(reply.body, body.as_bytes(), "{query}{range}");
        assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "a browser must not render it as a page");
        assert_eq!(
            (reply.header("x-cronhold-run"), reply.header("x-cronhold-output")),
            (Some(id.as_str()), Some("whole"))
        );
    }
    for bad in ["?from=-1", "?from=x", "?follow=maybe", "?form=1"] {
        daemon.request(&format!("GET /api/v1/runs/say/output{bad}")).assert_problem(400, "bad_request");
    }
    daemon.request("GET /api/v1/runs/nobody/output").assert_problem(404, "not_found");
}

/// A follower receives the output while it is written, and the end of the response when the run ends.
#[test]
fn output_is_followed_until_the_run_ends() {
    let sandbox = Sandbox::new("output-follow");
    let (one, two) = (sandbox.path("one"), sandbox.path("two"));
    let wait = |file: &std::path::Path| format!("until [ -e {} ]; do sleep 0.02; done", file.display());
    let program = format!("{}; echo first; {}; echo second", wait(&one), wait(&two));
    sandbox.put_file("talk", &format!("program: |\n  {program}\nschedule: triggered\n"));
    let daemon = sandbox.up();
    let made = daemon.request("POST /api/v1/jobs/talk/runs").json();
    let id = made["id"].as_str().expect("an id");
    let follow = |from: &str| {
        let mut wire = daemon.wire();
        let token = &daemon.token;
        let request = format!("GET /api/v1/runs/{id}/output?follow=true{from}\nAuthorization: Bearer {token}");
        wire.send(&daemon.http(&request));
        let head = wire.head();
        assert_eq!((head.status, head.header("x-cronhold-output")), (200, Some("live")));
        wire
    };
    let mut all = follow("");
    let mut rest = follow("&from=6");
    // A follower that disconnects does not affect the others.
    drop(follow(""));
    fs::write(&one, "").expect("written");
    assert_eq!(all.piece().as_deref(), Some(&b"first\n"[..]));
    assert_eq!(daemon.get(&format!("/api/v1/runs/{id}"))["state"], "running");
    fs::write(&two, "").expect("written");
    for wire in [&mut all, &mut rest] {
        assert_eq!(wire.piece().as_deref(), Some(&b"second\n"[..]));
        assert_eq!(wire.piece(), None, "it ends with the run");
    }
    // The output of a finished run is sent at once.
    let late = daemon.request(&format!("GET /api/v1/runs/{id}/output?follow=true"));
    assert_eq!(late.text(), "first\nsecond\n");
    // The connection is usable for further requests.
    all.send(&daemon.http("GET /health"));
    assert_eq!(all.reply().status, 200);
}
