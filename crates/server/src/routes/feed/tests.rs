//! The feed as a browser reads it.

use std::pin::pin;

use axum::body::BodyDataStream;
use axum::http::HeaderName;
use cronhold_engine::{EngineEvent, EngineObserver as _};
use futures_core::Stream;
use serde_json::Value;

use super::*;
use crate::testing::{ServerFixture, with_rig};

/// Events that occur at once: fewer than the ring keeps.
const BURST: usize = 1_000;
/// Together more than the ring and the buffers of a client hold.
const BURSTS: usize = 6;
/// What is buffered for a client at most, in bytes.
const BUFFERED_MAX: usize = 1024 * 1024;

struct Listener {
    stream: BodyDataStream,
    text: String,
}

impl Listener {
    async fn new(rig: &ServerFixture, job: Option<&str>, last: Option<&str>) -> Self {
        let which = FeedQuery { job: job.map(ToOwned::to_owned) };
        let headers = last.map(|last| (HeaderName::from_static("last-event-id"), last.parse().expect("a value")));
        let state = State(Arc::clone(&rig.app));
        let response = feed(state, QueryParams(which), headers.into_iter().collect()).await.expect("a response");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { stream: response.into_body().into_data_stream(), text: String::new() }
    }

    /// The next block up to an empty line.
    async fn block(&mut self) -> String {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return block;
            }
            let mut stream = pin!(&mut self.stream);
            let bytes = std::future::poll_fn(|context| stream.as_mut().poll_next(context))
                .await
                .expect("the stream does not end");
            self.text.push_str(std::str::from_utf8(&bytes.expect("the stream does not fail")).expect("text"));
        }
    }

    /// The next event: its id, name and JSON.
    async fn event(&mut self) -> (String, String, Value) {
        let block = self.block().await;
        let lines: Vec<&str> = block.lines().collect();
        let [id, name, json] = lines.as_slice() else { panic!("{block}") };
        let field = |line: &str, name: &str| line.strip_prefix(name).unwrap_or_else(|| panic!("{block}")).to_owned();
        let json = serde_json::from_str(&field(json, "data: ")).expect("JSON");
        (field(id, "id: "), field(name, "event: "), json)
    }
}

/// The message that a node has joined.
fn joined(name: &str) -> String {
    format!("node {name} joined")
}

#[test]
fn clients_receive_matching_events_and_resume() {
    with_rig("feed-events", async |rig| {
        let mut all = Listener::new(rig, None, None).await;
        let mut only_b = Listener::new(rig, Some("b"), None).await;
        let start = all.block().await;
        assert!(start.starts_with("retry: 1000\nid: "), "{start}");
        only_b.block().await;
        rig.send("PUT /api/v1/jobs/a", r#"{"program": "true"}"#).await;
        rig.send("PUT /api/v1/jobs/b", r#"{"program": "true"}"#).await;
        rig.send("POST /api/v1/jobs/a/runs", "{}").await;
        rig.send("POST /api/v1/jobs/b/pause", r#"{"why": "tea"}"#).await;
        rig.send("POST /api/v1/jobs/b/resume", "").await;
        rig.send("POST /api/v1/pause", r#"{"why": "moving"}"#).await;
        rig.request("DELETE /api/v1/jobs/b", "").await;

        let (_, name, job) = all.event().await;
        assert_eq!((name.as_str(), &job["id"], &job["revision"]), ("job", &"a".into(), &1.into()));
        assert_eq!(all.event().await.2["id"], "b");
        let (_, name, run) = all.event().await;
        assert_eq!((name.as_str(), &run["job"], &run["node"]), ("run", &"a".into(), &"test".into()));

        let (_, name, job) = only_b.event().await;
        assert_eq!((name.as_str(), &job["id"]), ("job", &"b".into()));
        let (seen, name, pause) = only_b.event().await;
        assert_eq!((name.as_str(), &pause["job"], &pause["pause"]["why"]), ("pause", &"b".into(), &"tea".into()));
        let (_, _, pause) = only_b.event().await;
        assert_eq!((&pause["job"], &pause["pause"]), (&"b".into(), &Value::Null));
        let (_, _, pause) = only_b.event().await;
        assert_eq!((&pause["job"], &pause["pause"]["everything"]), (&Value::Null, &true.into()));
        let (_, name, job) = only_b.event().await;
        assert_eq!((name.as_str(), &job["revision"]), ("job", &Value::Null));

        // A client that reconnects gets the events that it missed.
        let mut again = Listener::new(rig, Some("b"), Some(&seen)).await;
        again.block().await;
        assert_eq!(again.event().await.2["pause"], Value::Null);
        // A client with an id of another start must reload its state.
        let mut unknown = Listener::new(rig, None, Some("abc-1")).await;
        unknown.block().await;
        assert_eq!(unknown.event().await.1, "reset");
        for (path, more) in [("feed?job=%23", ""), ("feed?x=1", ""), ("feed", "Last-Event-ID: 7\n")] {
            assert_eq!(rig.request(&format!("GET /api/v1/{path}"), more).await.problem().0, 400, "{path} {more}");
        }
    });
}

/// More events than the ring keeps, each longer than usual. One client reads along, and one reads nothing until the end.
#[test]
fn client_that_does_not_read_gets_reset_and_others_get_everything() {
    with_rig("feed-slow", async |rig| {
        let (mut fast, mut slow) = (Listener::new(rig, None, None).await, Listener::new(rig, None, None).await);
        fast.block().await;
        let message = |number: usize| format!("{number} {}", "x".repeat(2_000));
        for burst in 0..BURSTS {
            let numbers = burst * BURST..(burst + 1) * BURST;
            numbers.clone().for_each(|number| rig.app.feed.on_event(&EngineEvent::NodeJoined(&message(number))));
            for number in numbers {
                let (_, name, event) = fast.event().await;
                assert_eq!((name, &event["message"]), ("node".to_owned(), &joined(&message(number)).into()));
            }
        }
        slow.block().await;
        let mut received = 0;
        loop {
            let (_, name, event) = slow.event().await;
            if name == "reset" {
                break;
            }
            assert_eq!(event["message"], joined(&message(received)));
            received += 1;
        }
        assert!(received * message(0).len() < BUFFERED_MAX, "{received} events were buffered");
        // Both receive what comes next.
        rig.app.feed.on_event(&EngineEvent::NodeJoined("last"));
        for listener in [&mut fast, &mut slow] {
            assert_eq!(listener.event().await.2["message"], joined("last"));
        }
    });
}
