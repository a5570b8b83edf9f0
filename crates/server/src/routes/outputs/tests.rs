//! Outputs by parts, and followed while they grow.

use std::pin::pin;
use std::task::Poll;

use axum::body::BodyDataStream;
use cronhold_core::command::{ExitOutcome, ProgramReport};
use cronhold_core::record::OutputSummary;
use futures_core::Stream;

use super::*;
use crate::testing::{ServerFixture, with_rig};

async fn made(rig: &ServerFixture) -> RunId {
    let job = rig.send("PUT /api/v1/jobs/a", r#"{"program": "true", "overlap": "allow"}"#).await;
    assert!(job.status < 300, "{job:?}");
    let made = rig.send("POST /api/v1/jobs/a/runs", "{}").await.json();
    RunId::parse(made["id"].as_str().expect("an id")).expect("an id")
}

async fn write(rig: &ServerFixture, run: RunId, at: u64, text: &str) {
    rig.app.store.append(run, at, text.as_bytes()).await.expect("the store works");
}

async fn end(rig: &ServerFixture, run: RunId, bytes: u64) {
    let written = Some(OutputSummary { bytes, tail: Vec::new() });
    rig.app.node.report(run, ProgramReport::Ended(ExitOutcome { written, ..ExitOutcome::SUCCESS })).await;
    while !load_run(&*rig.app.store, run).await.expect("the store works").expect("it is there").state.is_finished() {
        tokio::task::yield_now().await;
    }
}

/// Begins to follow, as a client would.
async fn begin(rig: &ServerFixture, name: &str, from: Option<u64>) -> BodyDataStream {
    let which = OutputQuery { from, follow: true };
    let state = State(Arc::clone(&rig.app));
    let response =
        output(state, PathSegment(name.to_owned()), QueryParams(which), HeaderMap::new()).await.expect("it is there");
    response.into_body().into_data_stream()
}

/// The next bytes; none at the end.
async fn next(stream: &mut BodyDataStream) -> Option<String> {
    let mut stream = pin!(stream);
    let bytes = std::future::poll_fn(|context| stream.as_mut().poll_next(context)).await?;
    Some(String::from_utf8(bytes.expect("nothing fails").to_vec()).expect("text"))
}

#[test]
fn come_in_parts() {
    with_rig("outputs-parts", async |rig| {
        let run = made(rig).await;
        write(rig, run, 0, "hello ").await;
        write(rig, run, 6, "world").await;
        for (query, range, status, text, part) in [
            ("", "", 200, "hello world", ""),
            ("?from=6", "", 200, "world", ""),
            ("?from=11", "", 200, "", ""),
            ("?from=99", "", 200, "", ""),
            ("", "bytes=0-4", 206, "hello", "bytes 0-4/11"),
            ("", "bytes=6-", 206, "world", "bytes 6-10/11"),
            ("", "bytes=6-99", 206, "world", "bytes 6-10/11"),
            ("", "bytes=-5", 206, "world", "bytes 6-10/11"),
            ("", "bytes=-99", 206, "hello world", "bytes 0-10/11"),
            ("", "bytes=11-", 416, "", "bytes */11"),
            ("", "bytes=-0", 416, "", "bytes */11"),
            // What is not one range of bytes is not understood, and all is sent.
            ("", "bytes=0-1,3-4", 200, "hello world", ""),
            ("", "bytes=4-2", 200, "hello world", ""),
            ("", "lines=1-2", 200, "hello world", ""),
            ("", "bytes=+1-2", 200, "hello world", ""),
            ("", "bytes=99999999999999999999-", 200, "hello world", ""),
        ] {
            let more = if range.is_empty() { String::new() } else { format!("Range: {range}\n") };
            let got = rig.ask(&format!("GET /api/v1/runs/a/output{query}"), &more).await;
            assert_eq!(got.status, status, "{query} {range}: {got:?}");
            let header = |name: &str| got.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
            assert_eq!(header("content-range"), part, "{query} {range}");
            if status == 416 {
                assert_eq!(got.problem().0, 416);
                continue;
            }
            assert_eq!(got.text, text, "{query} {range}");
            assert_eq!(header("content-length"), text.len().to_string());
            assert_eq!(header("content-type"), "application/octet-stream");
            assert_eq!(header("x-cronhold-run"), run.to_string());
            assert_eq!(header("x-cronhold-output"), "live");
        }
        for query in ["?from=-1", "?from=x", "?follow=maybe", "?form=1"] {
            assert_eq!(rig.ask(&format!("GET /api/v1/runs/a/output{query}"), "").await.problem().0, 400, "{query}");
        }
        assert_eq!(rig.ask("GET /api/v1/runs/b/output", "").await.problem().0, 404);
    });
}

#[test]
fn say_what_is_missing() {
    with_rig("outputs-missing", async |rig| {
        for (text, bytes, said) in [("whole", 5, "whole"), ("cut", 99, "cut"), ("", 7, "gone"), ("", 0, "whole")] {
            let run = made(rig).await;
            if !text.is_empty() {
                write(rig, run, 0, text).await;
            }
            end(rig, run, bytes).await;
            let got = rig.ask(&format!("GET /api/v1/runs/{run}/output"), "").await;
            assert_eq!(got.text, text);
            assert_eq!(got.headers["x-cronhold-output"], said);
        }
    });
}

#[test]
fn are_followed_to_the_end() {
    with_rig("outputs-followed", async |rig| {
        let run = made(rig).await;
        let mut all = begin(rig, "a", None).await;
        let mut rest = begin(rig, "a", Some(4)).await;
        write(rig, run, 0, "one\n").await;
        assert_eq!(next(&mut all).await.as_deref(), Some("one\n"));
        write(rig, run, 4, "two\n").await;
        assert_eq!(next(&mut all).await.as_deref(), Some("two\n"));
        assert_eq!(next(&mut rest).await.as_deref(), Some("two\n"));
        // What is written last and the end come together, and nothing is lost.
        write(rig, run, 8, "three").await;
        end(rig, run, 13).await;
        assert_eq!((next(&mut all).await.as_deref(), next(&mut all).await), (Some("three"), None));
        assert_eq!((next(&mut rest).await.as_deref(), next(&mut rest).await), (Some("three"), None));
        // One that has ended ends at once.
        let got = rig.ask("GET /api/v1/runs/a/output?follow=true&from=4", "").await;
        assert_eq!((got.status, got.text.as_str()), (200, "two\nthree"));
    });
}

#[test]
fn are_waited_for() {
    with_rig("outputs-waited", async |rig| {
        made(rig).await;
        let planned = rig.send("POST /api/v1/jobs/a/runs", r#"{"at": "2030-01-01T00:00:00Z"}"#).await.json();
        let id = planned["id"].as_str().expect("an id");
        let mut body = begin(rig, id, None).await;
        let mut first = pin!(next(&mut body));
        assert!(std::future::poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_pending())).await);
        rig.send(&format!("POST /api/v1/runs/{id}/start"), "").await;
        let run = RunId::parse(id).expect("an id");
        write(rig, run, 0, "at last").await;
        assert_eq!(first.await.as_deref(), Some("at last"));
        // A run that never starts ends what follows it.
        let other = rig.send("POST /api/v1/jobs/a/runs", r#"{"at": "2031-01-01T00:00:00Z"}"#).await.json();
        let id = other["id"].as_str().expect("an id");
        let mut body = begin(rig, id, None).await;
        rig.send(&format!("POST /api/v1/runs/{id}/skip"), "").await;
        assert_eq!(next(&mut body).await, None);
    });
}
