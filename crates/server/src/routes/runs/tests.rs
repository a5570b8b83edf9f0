//! Runs of a real node: creation, lists, names and operations.

use std::sync::Arc;

use cronhold_core::command::{ExitOutcome, ProgramReport};
use cronhold_core::decision::RecordChange;
use cronhold_core::policy::catch_up::CountedRange;
use cronhold_core::record::{Actor, Record, RecordKey, RecordVersion, ScheduleId, SkipSpan, Transition};
use cronhold_core::run::Reason;
use cronhold_core::{Args, JobId, JobUid, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;
use serde_json::{Value, json};

use crate::testing::{START, ServerFixture, with_rig};

const JOB: &str = r#"{"program": "echo hi", "overlap": "allow"}"#;

async fn put(rig: &ServerFixture, id: &str, job: &str) {
    let got = rig.send(&format!("PUT /api/v1/jobs/{id}"), job).await;
    assert_eq!(got.status, 201, "{got:?}");
}

/// Creates a run and returns its id.
async fn create_run(rig: &ServerFixture, job: &str, body: &str) -> String {
    let got = rig.send(&format!("POST /api/v1/jobs/{job}/runs"), body).await;
    assert_eq!(got.status, 201, "{got:?}");
    let created = got.json();
    assert_eq!(got.headers["location"], format!("/api/v1/runs/{}", created["id"].as_str().expect("an id")));
    created["id"].as_str().expect("an id").to_owned()
}

/// Ends the program of a run.
async fn end(rig: &ServerFixture, id: &str, success: bool) {
    let run = RunId::parse(id).expect("an id");
    rig.app.node.report(run, ProgramReport::Ended(ExitOutcome { success, ..ExitOutcome::SUCCESS })).await;
    loop {
        let run = rig.request(&format!("GET /api/v1/runs/{id}"), "").await.json();
        if !run["times"]["finished"].is_null() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn numbers(rig: &ServerFixture, query: &str) -> Vec<u64> {
    let got = rig.request(&format!("GET /api/v1/runs{query}"), "").await;
    assert_eq!(got.status, 200, "{query}: {got:?}");
    let runs = got.json()["runs"].clone();
    runs.as_array().expect("a list").iter().map(|run| run["number"].as_u64().expect("a number")).collect()
}

#[test]
fn runs_are_listed_latest_first() {
    with_rig("runs-list", async |rig| {
        put(rig, "a", JOB).await;
        put(rig, "b%2Fc", JOB).await;
        // Explicit times, because runs that are created in the same millisecond have no defined order.
        let at = |day: u32| format!(r#"{{"at": "2026-01-0{day}T00:00:00Z"}}"#);
        let first = create_run(rig, "a", &at(1)).await;
        end(rig, &first, true).await;
        let second = create_run(rig, "a", &at(2)).await;
        end(rig, &second, false).await;
        create_run(rig, "a", &at(3)).await;
        create_run(rig, "b%2Fc", r#"{"at": "2030-01-01T00:00:00Z"}"#).await;
        assert_eq!(numbers(rig, "").await, [1, 3, 2, 1]);
        assert_eq!(numbers(rig, "?job=a").await, [3, 2, 1]);
        assert_eq!(numbers(rig, "?job=b/c").await, [1]);
        assert_eq!(numbers(rig, "?job=a&state=success,failure").await, [2, 1]);
        assert_eq!(numbers(rig, "?state=scheduled").await, [1]);
        // Those that have not ended.
        assert_eq!(numbers(rig, "?since=2029-01-01T00:00:00Z").await, [1, 3]);
        let page = rig.request("GET /api/v1/runs?job=a&limit=2", "").await.json();
        assert_eq!(page["next"], page["runs"][1]["id"]);
        let next = page["next"].as_str().expect("there is more");
        assert_eq!(numbers(rig, &format!("?job=a&limit=2&before={next}")).await, [1]);
        let last = rig.request(&format!("GET /api/v1/runs?job=a&before={next}"), "").await.json();
        assert_eq!(last["next"], Value::Null);
    });
}

#[test]
fn run_detail_has_all_fields() {
    with_rig("runs-detail", async |rig| {
        put(rig, "a", r#"{"program": "echo {{ who }}", "params": {"who": {}}, "lock": "l"}"#).await;
        let id = create_run(rig, "a", r#"{"args": {"who": "you"}}"#).await;
        let run = rig.request("GET /api/v1/runs/a%231", "").await.json();
        let keys: Vec<&String> = run.as_object().expect("an object").keys().collect();
        for key in [
            "id",
            "number",
            "job",
            "args",
            "state",
            "reason",
            "nominal_time",
            "attempt",
            "retry_of",
            "rerun_of",
            "node",
            "exit_code",
            "signal",
            "times",
            "output_bytes",
            "tail",
        ] {
            assert!(keys.iter().any(|found| *found == key), "{key}: {run}");
        }
        assert_eq!(run["id"], id);
        assert_eq!(run["args"], json!({"who": "you"}));
        assert_eq!(run["command"], "echo you");
        assert_eq!((&run["lock"], &run["state"]), (&json!("l"), &json!("starting")));
        // The response has the name of the node, not its id.
        assert_eq!(run["node"], "test");
        assert_eq!(run["log"][0]["actor"], "operator api");
    });
}

#[test]
fn runs_are_found_by_id_number_and_job() {
    with_rig("runs-names", async |rig| {
        put(rig, "a", JOB).await;
        let got = rig.request("GET /api/v1/runs/a", "").await;
        assert!(got.text.contains("has no run yet"), "{got:?}");
        let id = create_run(rig, "a", "{}").await;
        end(rig, &id, true).await;
        create_run(rig, "a", r#"{"at": "2030-01-01T00:00:00Z"}"#).await;
        // A scheduled run does not count as the latest run.
        for name in [id.as_str(), "a%231", "a"] {
            let run = rig.request(&format!("GET /api/v1/runs/{name}"), "").await.json();
            assert_eq!((run["id"].as_str(), run["number"].as_u64()), (Some(id.as_str()), Some(1)), "{name}");
        }
        put(rig, "later", JOB).await;
        create_run(rig, "later", r#"{"at": "2030-01-01T00:00:00Z"}"#).await;
        assert_eq!(rig.request("GET /api/v1/runs/later", "").await.json()["state"], "scheduled");
        for (path, status, code) in [
            ("runs/a%2399", 404, "not_found"),
            ("runs/b", 404, "not_found"),
            ("runs/b%231", 404, "not_found"),
            ("runs/019d376a41fb7fffbfffffffffffffff", 404, "not_found"),
            ("runs/a%23x", 400, "bad_request"),
            ("runs/%00", 400, "bad_request"),
            ("runs?job=b", 404, "not_found"),
            ("runs?job=%23", 400, "bad_request"),
            ("runs?state=done", 400, "bad_request"),
            ("runs?since=yesterday", 400, "bad_request"),
            ("runs?before=7", 400, "bad_request"),
            ("runs?limit=0", 400, "bad_request"),
            ("runs?limit=1001", 400, "bad_request"),
            ("runs?jobs=a", 400, "bad_request"),
        ] {
            let got = rig.request(&format!("GET /api/v1/{path}"), "").await;
            assert_eq!(got.problem(), (status, code.to_owned()), "{path}");
        }
        // The runs of a removed job are kept.
        rig.request("DELETE /api/v1/jobs/a", "").await;
        assert_eq!(numbers(rig, "?job=a&state=error").await, [0_u64; 0]);
    });
}

#[test]
fn same_idempotency_key_creates_one_run() {
    with_rig("runs-keys", async |rig| {
        put(rig, "a", JOB).await;
        put(rig, "b", JOB).await;
        let request = async |job: &str, key: &str, body: &str| {
            let more = format!("Idempotency-Key: {key}\nContent-Type: application/json\n\n{body}");
            let got = rig.request(&format!("POST /api/v1/jobs/{job}/runs"), &more).await;
            let id = got.json()["id"].as_str().expect("an id").to_owned();
            (got.status, id)
        };
        let (status, first) = request("a", "k", "{}").await;
        assert_eq!(status, 201);
        assert_eq!(request("a", "k", "{}").await, (200, first.clone()));
        let (status, other) = request("a", "l", "{}").await;
        assert_eq!((status, other == first), (201, false));
        let (status, other) = request("b", "k", "{}").await;
        assert_eq!((status, other == first), (201, false));
        // With an explicit time, the same key creates another run.
        let (status, then) = request("a", "k", r#"{"at": "2026-01-01T00:00:00Z"}"#).await;
        assert_eq!((status, then == first), (201, false));
        assert_eq!(request("a", "k", r#"{"at": "2026-01-01T00:00:00Z"}"#).await, (200, then));
        // Concurrent requests create one run too.
        let (one, two) = tokio::join!(request("a", "m", "{}"), request("a", "m", "{}"));
        assert_eq!(one.1, two.1);
        let long = format!("Idempotency-Key: {}\n", "x".repeat(256));
        assert_eq!(rig.request("POST /api/v1/jobs/a/runs", &long).await.problem().0, 400);
    });
}

#[test]
fn invalid_run_requests_are_rejected() {
    with_rig("runs-rejected", async |rig| {
        put(rig, "a", r#"{"program": "true", "params": {"x": {}}}"#).await;
        for (job, body, status, code) in [
            ("b", "{}", 404, "not_found"),
            ("a", "{}", 422, "invalid"),
            ("a", r#"{"args": {"y": "1"}}"#, 422, "invalid"),
            ("a", r#"{"at": "noon"}"#, 400, "bad_request"),
            ("a", r#"{"arg": {}}"#, 400, "bad_request"),
            ("a", "{", 400, "bad_request"),
            ("%23", "{}", 400, "bad_request"),
        ] {
            let got = rig.send(&format!("POST /api/v1/jobs/{job}/runs"), body).await;
            assert_eq!(got.problem(), (status, code.to_owned()), "{body}");
        }
    });
}

#[test]
fn operations_change_the_state_of_runs() {
    with_rig("runs-operations", async |rig| {
        put(rig, "a", JOB).await;
        let post = async |path: &str, body: &str| {
            let got = rig.send(&format!("POST /api/v1/runs/{path}"), body).await;
            let state = got.json()["state"].as_str().map(ToOwned::to_owned);
            (got.status, state.unwrap_or_default())
        };
        let scheduled = create_run(rig, "a", r#"{"at": "2030-01-01T00:00:00Z"}"#).await;
        assert_eq!(post(&format!("{scheduled}/skip"), r#"{"why": "not then"}"#).await, (200, "skipped".into()));
        let run = rig.request(&format!("GET /api/v1/runs/{scheduled}"), "").await.json();
        assert_eq!(run["reason"], "by operator: not then");
        let early = create_run(rig, "a", r#"{"at": "2030-01-02T00:00:00Z"}"#).await;
        assert_eq!(post(&format!("{early}/start"), "").await, (200, "starting".into()));
        let id = create_run(rig, "a", "{}").await;
        assert_eq!(post(&format!("{id}/signal"), r#"{"signal": "HUP"}"#).await.0, 409);
        rig.app.node.report(RunId::parse(&id).expect("an id"), ProgramReport::Launched).await;
        while rig.request(&format!("GET /api/v1/runs/{id}"), "").await.json()["state"] != "running" {
            tokio::task::yield_now().await;
        }
        assert_eq!(post(&format!("{id}/signal"), r#"{"signal": "HUP"}"#).await, (200, "running".into()));
        assert_eq!(post(&format!("{id}/kill"), "").await, (200, "running".into()));
        let signals = rig.hands.requests().into_iter().filter(|request| request.starts_with("SIG"));
        assert_eq!(signals.collect::<Vec<_>>(), ["SIGHUP", "SIGKILL"]);
        assert_eq!(post(&format!("{id}/signal"), r#"{"signal": "NO"}"#).await.0, 422);
        assert_eq!(post(&format!("{id}/signal"), "").await.0, 400);
        assert_eq!(post(&format!("{id}/mark"), r#"{"state": "success"}"#).await.0, 409);
        assert_eq!(post(&format!("{id}/rerun"), "").await.0, 409);
        assert_eq!(post(&format!("{id}/stop"), "").await, (200, "stopping".into()));
        end(rig, &id, false).await;
        assert_eq!(post(&format!("{id}/stop"), "").await.0, 409);
        assert_eq!(post(&format!("{id}/mark"), r#"{"state": "success", "why": "ok"}"#).await, (200, "success".into()));
        assert_eq!(post("none/start", "").await.0, 404);
        let again = rig.send(&format!("POST /api/v1/runs/{id}/rerun"), r#"{"current": true}"#).await;
        assert_eq!(again.status, 201, "{again:?}");
        let run =
            rig.request(&format!("GET /api/v1/runs/{}", again.json()["id"].as_str().expect("an id")), "").await.json();
        assert_eq!(run["rerun_of"], id);
    });
}

/// Stores a span of three skips of job `a` and returns its id.
async fn store_span(rig: &ServerFixture) -> RunId {
    let from = Instant::from_secs(1_700_000_000);
    let range = CountedRange { from, to: from.plus(Span::from_secs(120)), count: 3 };
    let span = SkipSpan {
        id: RunId::from_key(from, "span"),
        number: RunNumber(7),
        job: JobId::parse("a").expect("an id"),
        uid: JobUid::from_bits(1),
        args: Args::new(),
        schedule: ScheduleId::parse("s").expect("an id"),
        range,
        reason: Reason::Missed,
        actions: 0,
        log: vec![Transition::entered(range.to, State::Skipped, Actor::Schedule)],
    };
    let id = span.id;
    let unit = Unit {
        version: RecordVersion::new(900, 1),
        compare: vec![(RecordKey::SkipSpan(id), None)],
        changes: vec![RecordChange::Put(Record::SkipSpan(Arc::new(span)))],
        take: Vec::new(),
        free: Vec::new(),
    };
    assert!(rig.app.store.commit(vec![unit]).await.iter().all(Result::is_ok));
    id
}

#[test]
fn span_of_skips_is_listed_and_shown_and_cannot_be_operated() {
    with_rig("runs-span", async |rig| {
        put(rig, "a", JOB).await;
        let id = store_span(rig).await.to_string();
        assert_eq!(numbers(rig, "?job=a&state=skipped").await, [7]);
        for name in [id.as_str(), "a%237", "a"] {
            let run = rig.request(&format!("GET /api/v1/runs/{name}"), "").await.json();
            assert_eq!(
                (&run["id"], &run["state"], &run["count"]),
                (&json!(id), &json!("skipped"), &json!(3)),
                "{name}"
            );
            assert_eq!((&run["from"], &run["nominal_time"]), (&json!("2023-11-14T22:13:20Z"), &run["from"]));
            assert_eq!((&run["to"], &run["reason"]), (&json!("2023-11-14T22:15:20Z"), &json!("missed")));
            assert_eq!((&run["schedule"], &run["times"]["finished"]), (&json!("s"), &run["to"]));
            assert_eq!(rig.request(&format!("GET /api/v1/runs/{name}/output"), "").await.status, 200);
            for (operation, body) in [("start", ""), ("skip", "{}"), ("stop", ""), ("rerun", r#"{"current": true}"#)] {
                let got = rig.send(&format!("POST /api/v1/runs/{name}/{operation}"), body).await;
                assert_eq!(got.problem(), (409, "conflict".to_owned()), "{operation} {name}");
            }
        }
    });
}

/// The number of the run that a job id means, and of the last run of the job in lists.
async fn meant(rig: &ServerFixture, job: &str) -> (u64, Option<u64>) {
    let run = rig.request(&format!("GET /api/v1/runs/{job}"), "").await.json();
    let listed = rig.request("GET /api/v1/jobs", "").await.json();
    let listed = listed["jobs"].as_array().expect("a list").iter().find(|listed| listed["id"] == job).expect("the job");
    let shown = rig.request(&format!("GET /api/v1/jobs/{job}"), "").await.json();
    assert_eq!(listed["last"], shown["last"]);
    (run["number"].as_u64().expect("a number"), listed["last"]["number"].as_u64())
}

/// Waits until a run is in a state, and returns its id.
async fn wait_for(rig: &ServerFixture, name: &str, state: &str) -> String {
    loop {
        let run = rig.request(&format!("GET /api/v1/runs/{name}"), "").await;
        let run: Value = serde_json::from_str(&run.text).expect("JSON");
        if run["state"] == state {
            return run["id"].as_str().expect("an id").to_owned();
        }
        tokio::task::yield_now().await;
    }
}

/// Whatever the hash of the occurrence, its attempts are in their order.
#[test]
fn attempts_are_listed_in_their_order() {
    with_rig("runs-attempts", async |rig| {
        for round in 0..10 {
            let job = format!("j{round}");
            put(rig, &job, r#"{"program": "x", "retry": {"attempts": 4, "backoff": "0s"}}"#).await;
            create_run(rig, &job, "{}").await;
            for number in 1..=4 {
                let id = wait_for(rig, &format!("{job}%23{number}"), "starting").await;
                assert_eq!(meant(rig, &job).await, (number, Some(number)));
                end(rig, &id, number == 4).await;
            }
            assert_eq!(numbers(rig, &format!("?job={job}")).await, [4, 3, 2, 1]);
            assert_eq!(meant(rig, &job).await, (4, Some(4)));
            let detail = |number: u64| format!("GET /api/v1/runs/{job}%23{number}");
            let (first, second) = (rig.request(&detail(1), "").await.json(), rig.request(&detail(2), "").await.json());
            assert_eq!((&first["retried_by"], &second["retry_of"]), (&second["id"], &first["id"]));
        }
    });
}

/// A retry that waits for its time has not started, and says when it will.
#[test]
fn pending_retry_is_not_the_last_run() {
    with_rig("runs-pending-retry", async |rig| {
        put(rig, "a", r#"{"program": "x", "retry": {"attempts": 2, "backoff": "5m"}}"#).await;
        let id = create_run(rig, "a", "{}").await;
        end(rig, &id, false).await;
        assert_eq!(numbers(rig, "?job=a").await, [2, 1]);
        assert_eq!(meant(rig, "a").await, (1, Some(1)));
        let retry = rig.request("GET /api/v1/runs/a%232", "").await.json();
        assert_eq!((&retry["state"], retry["due"].is_string()), (&json!("scheduled"), true), "{retry}");
        // `start` and `skip` are about runs that have not started.
        assert_eq!(rig.send("POST /api/v1/runs/a/start", "").await.json()["number"], 2);
        assert_eq!(meant(rig, "a").await, (2, Some(2)));
        assert_eq!(rig.request("GET /api/v1/runs/a%232", "").await.json()["due"], Value::Null);
    });
}

#[test]
fn job_means_its_running_run_or_the_last_that_started() {
    with_rig("runs-meant", async |rig| {
        put(rig, "a", r#"{"program": "x"}"#).await;
        let running = create_run(rig, "a", "{}").await;
        for number in 2..4 {
            // Skipped, because the first one is running.
            create_run(rig, "a", "{}").await;
            wait_for(rig, &format!("a%23{number}"), "skipped").await;
        }
        create_run(rig, "a", r#"{"at": "2040-01-01T00:00:00Z"}"#).await;
        assert_eq!(meant(rig, "a").await, (1, Some(1)));
        assert_eq!(rig.send("POST /api/v1/runs/a/stop", "").await.json()["number"], 1);
        end(rig, &running, true).await;
        assert_eq!(meant(rig, "a").await, (1, Some(1)));
        assert_eq!(rig.send("POST /api/v1/runs/a/mark", r#"{"state": "failure"}"#).await.json()["number"], 1);
        // An old occurrence that runs now is the last one that started.
        let old = create_run(rig, "a", r#"{"at": "2020-01-01T00:00:00Z"}"#).await;
        assert_eq!(meant(rig, "a").await, (5, Some(5)));
        end(rig, &old, false).await;
        assert_eq!(meant(rig, "a").await, (5, Some(5)));
        assert_eq!(numbers(rig, "?job=a&state=success,failure").await, [1, 5], "lists are in the order of time");
        let again = rig.send("POST /api/v1/runs/a/rerun", "{}").await.json();
        let again = rig.request(&format!("GET /api/v1/runs/{}", again["id"].as_str().expect("an id")), "").await;
        assert_eq!(again.json()["rerun_of"], old);
    });
}

/// A job whose runs were all skipped has no last run, and neither has one with a run in the future.
#[test]
fn skipped_and_scheduled_runs_are_not_the_last_run() {
    with_rig("runs-no-last", async |rig| {
        put(rig, "a", r#"{"program": "x"}"#).await;
        create_run(rig, "a", r#"{"at": "2040-01-01T00:00:00Z"}"#).await;
        create_run(rig, "a", r#"{"at": "2040-01-02T00:00:00Z"}"#).await;
        assert_eq!(meant(rig, "a").await, (2, None));
        assert_eq!(rig.send("POST /api/v1/runs/a/skip", "{}").await.json()["number"], 1, "the first one");
        assert_eq!(meant(rig, "a").await, (1, None));
        store_span(rig).await;
        assert_eq!(meant(rig, "a").await, (1, None));
    });
}

#[test]
fn stop_of_several_running_runs_must_name_one() {
    with_rig("runs-several", async |rig| {
        put(rig, "a", JOB).await;
        for _ in 0..2 {
            create_run(rig, "a", "{}").await;
        }
        let (one, _) = meant(rig, "a").await;
        for operation in ["stop", "kill", "signal"] {
            let got = rig.send(&format!("POST /api/v1/runs/a/{operation}"), r#"{"signal": "HUP"}"#).await;
            assert_eq!(got.problem(), (409, "ambiguous".to_owned()), "{operation}");
            let problem = got.json();
            let detail = problem["detail"].as_str().expect("a text");
            assert!(detail.contains("a#1") && detail.contains("a#2"), "{detail}");
        }
        let stopped = rig.send(&format!("POST /api/v1/runs/a%23{one}/stop"), "").await.json();
        end(rig, stopped["id"].as_str().expect("an id"), false).await;
        assert_eq!(rig.send("POST /api/v1/runs/a/stop", "").await.status, 200, "one is left");
    });
}

/// An occurrence of last year that ran just now has run since an hour ago.
#[test]
fn since_is_about_when_runs_ran() {
    with_rig("runs-since", async |rig| {
        put(rig, "a", JOB).await;
        let old = create_run(rig, "a", r#"{"at": "2020-01-01T00:00:00Z"}"#).await;
        end(rig, &old, false).await;
        let after = rig.app.clock.now().plus(Span::from_secs(3_600));
        for job in ["", "&job=a"] {
            let before = START.minus(Span::from_secs(3_600));
            assert_eq!(numbers(rig, &format!("?since={before}&state=failure{job}")).await, [1]);
            assert_eq!(numbers(rig, &format!("?since={after}{job}")).await, [0_u64; 0]);
        }
    });
}
