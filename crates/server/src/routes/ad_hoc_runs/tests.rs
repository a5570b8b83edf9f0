//! Ad hoc runs of a real node.

use serde_json::{Value, json};

use crate::testing::with_rig;

#[test]
fn ad_hoc_run_is_shown_and_its_job_is_not_listed() {
    with_rig("ad-hoc", async |rig| {
        let body = json!({"job": {"program": ["echo", "{{ day }}"], "params": ["day"]}, "args": {"day": "monday"}});
        let got = rig.send("POST /api/v1/runs", &body.to_string()).await;
        assert_eq!(got.status, 201, "{got:?}");
        let created = got.json();
        let id = created["id"].as_str().expect("an id").to_owned();
        assert_eq!((&created["job"], &created["number"]), (&json!(format!("adhoc/{id}")), &json!(1)));
        let run = rig.request(&format!("GET /api/v1/runs/{id}"), "").await.json();
        assert_eq!((&run["command"], &run["args"]), (&json!("echo monday"), &json!({"day": "monday"})));
        let job = rig.request(&format!("GET /api/v1/jobs/adhoc%2F{id}"), "").await;
        assert_eq!((job.status, &job.json()["definition"]["params"]), (200, &json!({"day": {}})), "{job:?}");
        let listed = async |query: &str| {
            let jobs = rig.request(&format!("GET /api/v1/jobs{query}"), "").await.json();
            let ids = jobs["jobs"].as_array().expect("a list").iter().filter_map(|job| job["id"].as_str());
            ids.filter(|id| id.starts_with("adhoc/")).count()
        };
        assert_eq!([listed("").await, listed("?match=*").await, listed("?match=adhoc/*").await], [0, 0, 1]);
    });
}

#[test]
fn one_key_creates_one_ad_hoc_run() {
    with_rig("ad-hoc-keys", async |rig| {
        for at in [Value::Null, json!("2030-01-01T00:00:00Z")] {
            let mut body = json!({"job": {"program": {"noop": true}}});
            if !at.is_null() {
                body["at"] = at;
            }
            let create = async |key: &str| {
                let head = format!("Content-Type: application/json\nIdempotency-Key: {key}");
                rig.request("POST /api/v1/runs", &format!("{head}\n\n{body}")).await
            };
            let first = create("order 1").await;
            let again = create("order 1").await;
            let other = create("order 2").await;
            assert_eq!([first.status, again.status, other.status], [201, 200, 201]);
            assert_eq!(first.json(), again.json());
            assert_ne!(first.json(), other.json());
        }
    });
}

#[test]
fn invalid_ad_hoc_runs_are_refused() {
    with_rig("ad-hoc-refused", async |rig| {
        for (body, status, detail) in [
            (json!({"job": {"program": "true", "tiemout": "5m"}}), 422, "`job`: "),
            (json!({"job": {"program": "true", "schedule": "@daily"}}), 422, "an ad hoc run cannot have `schedule`"),
            (json!({"job": {"program": "true", "params": ["x"]}}), 422, "the param `x` needs a value"),
            (json!({"job": {"program": "true"}, "args": {"x": "1"}}), 422, "there is no param `x`"),
            (json!({"job": {}}), 422, "`job`: "),
            (json!({"args": {}}), 400, ""),
            (json!({"job": "backup"}), 400, ""),
            (json!({"job": {"program": "true"}, "wait": true}), 400, ""),
        ] {
            let got = rig.send("POST /api/v1/runs", &body.to_string()).await;
            let problem = got.json();
            assert_eq!(got.status, status, "{body}: {problem}");
            let shown = problem["detail"].as_str().expect("a detail");
            assert!(shown.starts_with(detail), "{body}: {shown}");
        }
        assert_eq!(rig.request("GET /api/v1/runs", "").await.json()["runs"], json!([]));
    });
}
