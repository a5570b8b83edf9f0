//! Ranges of outputs, and outputs that are followed while they grow.

use std::pin::pin;
use std::task::Poll;

use axum::body::BodyDataStream;
use cronhold_core::command::{ExitOutcome, ProgramReport};
use cronhold_core::record::OutputSummary;
use futures_core::Stream;

use super::*;
use crate::testing::{ServerFixture, with_rig};

async fn create_run(rig: &ServerFixture) -> RunId {
    let job = rig.send("PUT /api/v1/jobs/a", r#"{"program": "true", "overlap": "allow"}"#).await;
    assert!(job.status < 300, "{job:?}");
    let created = rig.send("POST /api/v1/jobs/a/runs", "{}").await.json();
    RunId::parse(created["id"].as_str().expect("an id")).expect("an id")
}

async fn write(rig: &ServerFixture, run: RunId, at: u64, text: &str) {
    rig.app.store.append(run, at, text.as_bytes()).await.expect("the store works");
}

async fn end(rig: &ServerFixture, run: RunId, bytes: u64) {
    let written = Some(OutputSummary { bytes, tail: Vec::new(), stderr: None });
    rig.app.node.report(run, ProgramReport::Ended(ExitOutcome { written, ..ExitOutcome::SUCCESS })).await;
    while !load_run(&*rig.app.store, run).await.expect("the store works").expect("a run").state.is_finished() {
        tokio::task::yield_now().await;
    }
}

/// Starts to follow an output.
async fn follow_output(rig: &ServerFixture, name: &str, from: Option<u64>) -> BodyDataStream {
    let which = OutputQuery { from, follow: true };
    let state = State(Arc::clone(&rig.app));
    let response =
        output(state, PathSegment(name.to_owned()), QueryParams(which), HeaderMap::new()).await.expect("a response");
    response.into_body().into_data_stream()
}

/// The next bytes; `None` at the end.
async fn next(stream: &mut BodyDataStream) -> Option<String> {
    let mut stream = pin!(stream);
    let bytes = std::future::poll_fn(|context| stream.as_mut().poll_next(context)).await?;
    Some(String::from_utf8(bytes.expect("the stream does not fail").to_vec()).expect("text"))
}

#[test]
fn outputs_are_read_by_range() {
    with_rig("outputs-parts", async |rig| {
        let run = create_run(rig).await;
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
            // A header that is not a single range of bytes is ignored.
            ("", "bytes=0-1,3-4", 200, "hello world", ""),
            ("", "bytes=4-2", 200, "hello world", ""),
            ("", "lines=1-2", 200, "hello world", ""),
            ("", "bytes=+1-2", 200, "hello world", ""),
            ("", "bytes=99999999999999999999-", 200, "hello world", ""),
        ] {
            let more = if range.is_empty() { String::new() } else { format!("Range: {range}\n") };
            let got = rig.request(&format!("GET /api/v1/runs/a/output{query}"), &more).await;
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
            assert_eq!(rig.request(&format!("GET /api/v1/runs/a/output{query}"), "").await.problem().0, 400, "{query}");
        }
        assert_eq!(rig.request("GET /api/v1/runs/b/output", "").await.problem().0, 404);
    });
}

#[test]
fn header_reports_missing_output() {
    with_rig("outputs-missing", async |rig| {
        for (text, bytes, expected) in [("whole", 5, "whole"), ("cut", 99, "cut"), ("", 7, "gone"), ("", 0, "whole")] {
            let run = create_run(rig).await;
            if !text.is_empty() {
                write(rig, run, 0, text).await;
            }
            end(rig, run, bytes).await;
            let got = rig.request(&format!("GET /api/v1/runs/{run}/output"), "").await;
            assert_eq!(got.text, text);
            assert_eq!(got.headers["x-cronhold-output"], expected);
        }
    });
}

#[test]
fn followed_output_ends_with_its_run() {
    with_rig("outputs-followed", async |rig| {
        let run = create_run(rig).await;
        let mut all = follow_output(rig, "a", None).await;
        let mut rest = follow_output(rig, "a", Some(4)).await;
        write(rig, run, 0, "one\n").await;
        assert_eq!(next(&mut all).await.as_deref(), Some("one\n"));
        write(rig, run, 4, "two\n").await;
        assert_eq!(next(&mut all).await.as_deref(), Some("two\n"));
        assert_eq!(next(&mut rest).await.as_deref(), Some("two\n"));
        // The last output arrives although the run ends immediately after it.
        write(rig, run, 8, "three").await;
        end(rig, run, 13).await;
        assert_eq!((next(&mut all).await.as_deref(), next(&mut all).await), (Some("three"), None));
        assert_eq!((next(&mut rest).await.as_deref(), next(&mut rest).await), (Some("three"), None));
        // The stream of a finished run ends immediately.
        let got = rig.request("GET /api/v1/runs/a/output?follow=true&from=4", "").await;
        assert_eq!((got.status, got.text.as_str()), (200, "two\nthree"));
    });
}

#[test]
fn follower_waits_for_the_start_of_a_run() {
    with_rig("outputs-waited", async |rig| {
        create_run(rig).await;
        let scheduled = rig.send("POST /api/v1/jobs/a/runs", r#"{"at": "2030-01-01T00:00:00Z"}"#).await.json();
        let id = scheduled["id"].as_str().expect("an id");
        let mut body = follow_output(rig, id, None).await;
        let mut first = pin!(next(&mut body));
        assert!(std::future::poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_pending())).await);
        rig.send(&format!("POST /api/v1/runs/{id}/start"), "").await;
        let run = RunId::parse(id).expect("an id");
        write(rig, run, 0, "at last").await;
        assert_eq!(first.await.as_deref(), Some("at last"));
        // Skipping a run ends the stream.
        let other = rig.send("POST /api/v1/jobs/a/runs", r#"{"at": "2031-01-01T00:00:00Z"}"#).await.json();
        let id = other["id"].as_str().expect("an id");
        let mut body = follow_output(rig, id, None).await;
        rig.send(&format!("POST /api/v1/runs/{id}/skip"), "").await;
        assert_eq!(next(&mut body).await, None);
    });
}
