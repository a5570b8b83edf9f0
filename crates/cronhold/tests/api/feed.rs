//! The feed over real connections that are interrupted, and across a restart.

use std::collections::BTreeSet;

use serde_json::Value;

use super::sandbox::{Daemon, IDLE, Sandbox};
use super::wire::Wire;

/// A reader of the feed.
struct Listener {
    wire: Wire,
    text: String,
    last: String,
}

impl Listener {
    fn new(daemon: &Daemon, query: &str, last: Option<&str>) -> Self {
        let mut wire = daemon.wire();
        let last = last.map(|last| format!("\nLast-Event-ID: {last}")).unwrap_or_default();
        wire.send(&daemon.http(&format!("GET /api/v1/feed{query}\nAuthorization: Bearer {}{last}", daemon.token)));
        let head = wire.head();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        let mut listener = Self { wire, text: String::new(), last: String::new() };
        let begin = listener.block();
        assert!(begin.starts_with("retry: 1000\nid: "), "{begin}");
        listener
    }

    /// The lines up to an empty one.
    fn block(&mut self) -> String {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let id = block.lines().find_map(|line| line.strip_prefix("id: ")).expect("an id");
                id.clone_into(&mut self.last);
                return block;
            }
            let piece = self.wire.piece().expect("the feed has no end");
            self.text.push_str(std::str::from_utf8(&piece).expect("a text"));
        }
    }

    /// The next event: its name and its data.
    fn event(&mut self) -> (String, Value) {
        loop {
            let block = self.block();
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            // Keep-alive blocks have no event.
            if let (Some(name), Some(json)) = (field("event"), field("data")) {
                return (name.to_owned(), serde_json::from_str(json).expect("JSON"));
            }
        }
    }

    /// The next event that is about a run.
    fn run(&mut self) -> Value {
        loop {
            let (name, value) = self.event();
            assert_ne!(name, "reset", "{value}");
            if name == "run" {
                return value;
            }
        }
    }
}

#[test]
fn feed_sends_changes_of_jobs_runs_and_pauses() {
    let sandbox = Sandbox::new("feed");
    let daemon = sandbox.up();
    let mut all = Listener::new(&daemon, "", None);
    let mut only_b = Listener::new(&daemon, "?job=b", None);
    for id in ["a", "b"] {
        assert_eq!(daemon.send(&format!("PUT /api/v1/jobs/{id}"), r#"{"program": {"noop": true}}"#).status, 201);
    }
    assert_eq!(all.event(), ("job".to_owned(), serde_json::json!({"id": "a", "revision": 1})));
    assert_eq!(only_b.event().1["id"], "b");
    daemon.run("a");
    loop {
        if all.run()["state"] == "success" {
            break;
        }
    }
    assert_eq!(daemon.send("POST /api/v1/jobs/b/pause", r#"{"why": "tea"}"#).status, 204);
    let (name, pause) = only_b.event();
    assert_eq!((name.as_str(), &pause["job"], &pause["pause"]["why"]), ("pause", &"b".into(), &"tea".into()));
    assert_eq!(daemon.request("DELETE /api/v1/jobs/b").status, 204);
    // The removal ends the pause, which is an event too.
    loop {
        let (name, value) = only_b.event();
        if name == "job" {
            assert_eq!(value["revision"], Value::Null);
            break;
        }
    }
    daemon.request("GET /api/v1/feed\nLast-Event-ID: 7").assert_problem(400, "bad_request");
    daemon.request("GET /api/v1/feed?jobs=a").assert_problem(400, "bad_request");
}

/// A reader that reconnects after each event sees each step of each run once.
#[test]
fn feed_resumes_after_the_last_event_id() {
    const RUNS: usize = 20;
    let sandbox = Sandbox::new("feed-resume");
    sandbox.put_file("a", IDLE);
    let daemon = sandbox.up();
    let begin = Listener::new(&daemon, "", None).last;
    for _ in 0..RUNS {
        daemon.run("a");
    }
    let read_all = |breaks: bool| {
        let mut listener = Listener::new(&daemon, "", Some(&begin));
        let mut seen = Vec::new();
        let mut ended = BTreeSet::new();
        while ended.len() < RUNS {
            let (name, value) = listener.event();
            assert_ne!(name, "reset", "{value}");
            seen.push((listener.last.clone(), value.clone()));
            if value["state"] == "success" {
                ended.insert(value["number"].as_u64());
            }
            if breaks {
                listener = Listener::new(&daemon, "", Some(&listener.last));
            }
        }
        seen
    };
    let (whole, broken) = (read_all(false), read_all(true));
    assert_eq!(whole, broken);
    let ids: BTreeSet<&String> = whole.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), whole.len(), "each event has its own id");
    let successes = whole.iter().filter(|(_, value)| value["state"] == "success").count();
    assert_eq!(successes, RUNS);
}

/// After a restart, the daemon does not know the earlier events and sends `reset`.
#[test]
fn restart_resets_the_feed() {
    let sandbox = Sandbox::new("feed-reset");
    sandbox.put_file("a", IDLE);
    let daemon = sandbox.up();
    let mut listener = Listener::new(&daemon, "", None);
    daemon.run("a");
    listener.run();
    daemon.kill();
    let daemon = sandbox.up();
    let mut again = Listener::new(&daemon, "", Some(&listener.last));
    assert_eq!(again.event().0, "reset");
    daemon.run("a");
    assert_eq!(again.run()["number"], 2, "events continue after the reset");
    // An open feed does not delay a daemon that stops.
    daemon.stop();
}
