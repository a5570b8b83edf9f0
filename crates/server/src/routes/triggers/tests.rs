//! Triggers of jobs on a real node.

use cronhold_core::RunId;
use cronhold_core::command::{ExitOutcome, ProgramReport};
use serde_json::{Value, json};

use crate::testing::{ServerFixture, TestResponse, with_rig};

async fn put(rig: &ServerFixture, id: &str, job: &str) {
    let got = rig.send(&format!("PUT /api/v1/jobs/{id}"), job).await;
    assert_eq!(got.status, 201, "{got:?}");
}

async fn trigger(rig: &ServerFixture, job: &str, body: &str) -> TestResponse {
    rig.send(&format!("POST /api/v1/jobs/{job}/triggers"), body).await
}

/// The status of the response, and what became of the trigger.
fn outcome(got: &TestResponse) -> (u16, String, Value) {
    let receipt = got.json();
    (got.status, receipt["status"].as_str().unwrap_or_default().to_owned(), receipt["number"].clone())
}

async fn list(rig: &ServerFixture, job: &str) -> Value {
    let got = rig.request(&format!("GET /api/v1/jobs/{job}/triggers"), "").await;
    assert_eq!(got.status, 200, "{got:?}");
    got.json()
}

fn ids(triggers: &Value) -> Vec<&str> {
    triggers.as_array().expect("a list").iter().map(|trigger| trigger["id"].as_str().expect("an id")).collect()
}

#[test]
fn trigger_of_a_plain_job_creates_a_run_once() {
    with_rig("triggers-plain", async |rig| {
        put(rig, "a", r#"{"program": "true", "overlap": "allow", "params": {"x": {}}}"#).await;
        let body = r#"{"id": "order 4711", "args": {"x": "1"}}"#;
        let first = trigger(rig, "a", body).await;
        assert_eq!(outcome(&first), (201, "run".to_owned(), json!(1)));
        assert_eq!(outcome(&trigger(rig, "a", body).await), (200, "duplicate".to_owned(), json!(1)));
        // Without an id, each is a new one.
        for number in [2, 3] {
            let got = trigger(rig, "a", r#"{"args": {"x": "1"}}"#).await;
            assert_eq!(outcome(&got), (201, "run".to_owned(), json!(number)));
        }
        let run = rig.request("GET /api/v1/runs/a%231", "").await.json();
        assert_eq!((ids(&run["triggers"]), &run["id"]), (vec!["order 4711"], &first.json()["run"]));
        let none = list(rig, "a").await;
        assert_eq!((&none["policy"], &none["pending"], &none["decisions"]), (&Value::Null, &json!([]), &json!([])));
    });
}

#[test]
fn pending_triggers_are_listed_removed_and_batched() {
    with_rig("triggers-batched", async |rig| {
        put(rig, "a", r#"{"program": "true", "batching": "greedy"}"#).await;
        let send = async |id: &str| outcome(&trigger(rig, "a", &json!({"id": id}).to_string()).await);
        assert_eq!(send("t1").await, (201, "run".to_owned(), json!(1)));
        for id in ["t2", "t3/größe", "t4", "t5"] {
            assert_eq!(send(id).await, (201, "pending".to_owned(), Value::Null), "{id}");
        }
        assert_eq!(send("t4").await, (200, "duplicate".to_owned(), Value::Null));
        let waiting = list(rig, "a").await;
        assert_eq!(
            (ids(&waiting["pending"]), &waiting["policy"]),
            (vec!["t2", "t3/größe", "t4", "t5"], &json!("greedy"))
        );
        let last = &waiting["decisions"][0];
        assert_eq!((&last["kind"], &last["times"], &last["pending"]), (&json!("busy"), &json!(4), &json!(4)));
        let why = rig.request("GET /api/v1/jobs/a/why", "").await.json();
        let lines = why["lines"].as_array().expect("lines");
        assert!(
            lines.iter().any(|line| line["text"].as_str().is_some_and(|text| text.contains("cronhold triggers a")))
        );

        let remove = async |path: &str| rig.send(&format!("DELETE /api/v1/jobs/a/triggers{path}"), "").await;
        assert_eq!(remove("/t3%2Fgr%C3%B6%C3%9Fe").await.json(), json!({"removed": 1}));
        assert_eq!(remove("/t3%2Fgr%C3%B6%C3%9Fe").await.problem(), (404, "not_found".to_owned()));

        // The end of the run lets the others become one.
        let run = rig.request("GET /api/v1/runs/a%231", "").await.json();
        let run = RunId::parse(run["id"].as_str().expect("an id")).expect("an id");
        rig.app.node.report(run, ProgramReport::Ended(ExitOutcome::SUCCESS)).await;
        let second = loop {
            let second = rig.request("GET /api/v1/runs/a%232", "").await;
            if second.status == 200 {
                break second.json();
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(ids(&second["triggers"]), ["t2", "t4", "t5"]);
        assert_eq!(send("t6").await.1, "pending");
        assert_eq!(remove("").await.json(), json!({"removed": 1}));
        assert_eq!(remove("").await.json(), json!({"removed": 0}));
        let counts = &list(rig, "a").await["counts"];
        assert_eq!(counts, &json!({"received": 6, "consumed": 4, "expired": 0, "removed": 2}));
    });
}

#[test]
fn wrong_triggers_are_refused() {
    with_rig("triggers-wrong", async |rig| {
        put(rig, "a", r#"{"program": "true", "batching": "greedy"}"#).await;
        for (job, body, expected) in [
            ("b", "{}", (404, "not_found")),
            ("a", r#"{"id": ""}"#, (422, "invalid")),
            ("a", r#"{"args": {"x": "1"}}"#, (422, "invalid")),
            ("a", r#"{"key": "x"}"#, (400, "bad_request")),
        ] {
            let (status, code) = trigger(rig, job, body).await.problem();
            assert_eq!((status, code.as_str()), expected, "{job} {body}");
        }
        assert_eq!(rig.request("GET /api/v1/jobs/b/triggers", "").await.problem(), (404, "not_found".to_owned()));
        assert_eq!(rig.send("DELETE /api/v1/jobs/b/triggers", "").await.problem(), (404, "not_found".to_owned()));
    });
}

/// A batching policy decides about the run of a control event, too.
#[test]
fn control_event_adds_a_trigger() {
    with_rig("triggers-control", async |rig| {
        put(rig, "a", r#"{"program": "true", "batching": "greedy"}"#).await;
        let event = async || rig.send("POST /api/v1/control", r#"{"action": "trigger", "args": "a"}"#).await;
        let first = event().await;
        assert_eq!((first.status, &first.json()["number"]), (201, &json!(1)));
        assert_eq!(event().await.status, 204);
        assert_eq!(list(rig, "a").await["counts"]["received"], json!(2));
    });
}
