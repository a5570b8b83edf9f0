//! The smaller routes: nodes, reload, control, health, metrics and the OpenAPI document.

use std::collections::BTreeSet;

use cronhold_core::NodeId;
use cronhold_core::record::{NodeRecord, RecordKey};
use cronhold_engine::{EngineEvent, EngineObserver};
use cronhold_schedule::{Instant, Span};
use cronhold_store::UnreadableRecord;
use serde_json::json;

use crate::testing::with_rig;

#[test]
fn nodes_reload_and_health_are_reported() {
    with_rig("nodes", async |rig| {
        let nodes = rig.request("GET /api/v1/nodes", "").await.json();
        assert_eq!((nodes.as_array().map(Vec::len), &nodes[0]["name"]), (Some(1), &json!("test")));
        assert_eq!(nodes[0]["is_this"], true);
        let reloaded = rig.request("POST /api/v1/reload", "").await.json();
        assert_eq!(reloaded, json!({"summary": "no job, 1 mistake", "mistakes": 1}));
        let well = json!({"ok": true, "ready": true, "trouble": null, "problems": [], "unreadable_records": 0,
            "version": "1.2.3", "zone_data": "test", "other_zone_data": [], "store_limits": null});
        for path in ["GET /health", "GET /ready"] {
            assert_eq!(rig.raw(path, "").await.json(), well);
        }
        // The node may report the same record again.
        for _ in 0..2 {
            let reason = "not JSON".to_owned();
            let record = UnreadableRecord { key: Some(RecordKey::Pause), version: None, reason };
            rig.app.feed.on_event(&EngineEvent::RecordUnreadable(&record));
        }
        let health = rig.raw("GET /health", "").await.json();
        assert_eq!((&health["ok"], &health["unreadable_records"]), (&json!(true), &json!(1)));
        assert_eq!(health["problems"][0]["code"], "records_unreadable");
        assert!(rig.request("GET /metrics", "").await.text.contains("\ncronhold_unreadable_records 1\n"));
        // A commit that writes the record makes it readable.
        assert_eq!(rig.send("POST /api/v1/pause", "{}").await.status, 204);
        assert_eq!(rig.raw("GET /health", "").await.json()["problems"], json!([]));
        rig.app.is_ready.store(false, std::sync::atomic::Ordering::Release);
        assert_eq!((rig.raw("GET /health", "").await.status, rig.raw("GET /ready", "").await.status), (200, 503));
        assert_eq!(rig.request("GET /api/v1/jobs", "").await.problem(), (503, "unavailable".to_owned()));
        assert_eq!(rig.raw("GET /api/v1/jobs", "").await.problem().0, 401, "authentication is checked first");
    });
}

#[test]
fn nodes_are_drained_and_undrained() {
    with_rig("drain", async |rig| {
        let listed = async || rig.request("GET /api/v1/nodes", "").await.json()[0].clone();
        let before = listed().await;
        assert_eq!((&before["gone"], &before["runs"], &before["draining"]), (&json!(false), &json!(0), &json!(false)));
        let id = before["id"].as_str().expect("an id");
        for (name, what, changed) in
            [("test", "drain", true), (id, "drain", false), (id, "undrain", true), ("test", "undrain", false)]
        {
            let drained = rig.request(&format!("POST /api/v1/nodes/{name}/{what}"), "").await;
            assert_eq!(drained.status, 200, "{drained:?}");
            let node = listed().await;
            assert_eq!(drained.json(), json!({"changed": changed, "node": node}), "{name} {what}");
            assert_eq!(node["draining"], what == "drain");
        }
        let unknown = rig.request("POST /api/v1/nodes/tset/drain", "").await;
        assert_eq!(unknown.problem(), (404, "not_found".to_owned()));
        assert!(unknown.text.contains("did you mean `test`?"), "{}", unknown.text);
        let unknown = rig.request(&format!("POST /api/v1/nodes/{}/drain", "0".repeat(32)), "").await;
        assert!(unknown.problem().0 == 404 && unknown.text.contains("`cronhold nodes` shows the nodes"));
        let rejected = rig.send("POST /api/v1/nodes/test/drain", r#"{"on": true}"#).await;
        assert_eq!(rejected.problem().0, 400, "the body must have no keys");
    });
}

/// Several nodes can have the same name: one that is alive, and earlier ones that are gone.
#[test]
fn live_node_takes_precedence_over_gone_ones_with_its_name() {
    with_rig("same-name", async |rig| {
        let now = rig.app.store.time().await.expect("a time");
        let beat = async |bits: u128, gone: Instant| {
            let labels = BTreeSet::from(["gpu".to_owned()]);
            let node = NodeRecord { gone, labels, ..NodeRecord::new(NodeId::from_bits(bits), "twin", 900, now) };
            rig.app.store.beat(&node, &[]).await.expect("stored");
        };
        beat(1, Instant::EPOCH).await;
        beat(2, Instant::EPOCH).await;
        assert_eq!(rig.request("POST /api/v1/nodes/twin/drain", "").await.problem(), (409, "conflict".to_owned()));
        beat(3, now.plus(Span::from_secs(3_600))).await;
        let drained = rig.request("POST /api/v1/nodes/twin/drain", "").await.json();
        assert_eq!((&drained["node"]["gone"], &drained["node"]["labels"]), (&json!(false), &json!(["gpu"])));
        assert_eq!(drained["node"]["id"], NodeId::from_bits(3).to_string());
        let gone = rig.request(&format!("POST /api/v1/nodes/{}/drain", NodeId::from_bits(1)), "").await.json();
        assert_eq!((&gone["changed"], &gone["node"]["gone"]), (&json!(true), &json!(true)));
    });
}

#[test]
fn metrics_count_jobs_and_pauses() {
    with_rig("metrics", async |rig| {
        for id in ["a", "b"] {
            let put = rig.send(&format!("PUT /api/v1/jobs/{id}"), r#"{"program": "x"}"#).await;
            assert_eq!(put.status, 201);
        }
        assert_eq!(rig.request("POST /api/v1/jobs/b/pause", "").await.status, 204);
        let got = rig.request("GET /metrics", "").await;
        assert!(got.headers["content-type"].to_str().is_ok_and(|kind| kind.starts_with("text/plain; version=0.0.4")));
        for line in [
            "cronhold_jobs 2",
            "cronhold_jobs_paused 1",
            "cronhold_job_file_mistakes 2",
            "cronhold_ready 1",
            "cronhold_store_up 1",
            "cronhold_build_info{version=\"1.2.3\"} 1",
            "# TYPE cronhold_commands_total counter",
        ] {
            assert!(got.text.lines().any(|found| found == line), "{line} is not in {}", got.text);
        }
    });
}

#[test]
fn control_events_of_cronken_are_applied() {
    with_rig("control", async |rig| {
        let send = async |event: serde_json::Value| rig.send("POST /api/v1/control", &event.to_string()).await;
        let definition =
            json!({"cron_args": {"cronstring": "0 3 * * *"}, "job_args": {"cmd": "echo", "lock": false, "ttl": 10}});
        let add = json!({"action": "add", "args": {"job_name": "backup", "job_def": definition}});
        assert_eq!(send(add.clone()).await.status, 204);
        assert_eq!(send(add).await.problem().0, 409, "the job exists");
        let show = async || rig.request("GET /api/v1/jobs/backup", "").await.json();
        assert_eq!(show().await["schedule"], "0 3 * * *");
        for (action, paused) in [("pause", true), ("pause", true), ("resume", false), ("resume", false)] {
            assert_eq!(send(json!({"action": action, "args": "backup"})).await.status, 204);
            assert_eq!(show().await["paused"], paused);
        }
        assert_eq!(send(json!({"action": "pause", "args": "all"})).await.status, 204);
        assert_eq!(show().await["pause"]["everything"], true);
        assert_eq!(send(json!({"action": "resume", "args": "all"})).await.status, 204);

        let triggered = send(json!({"action": "trigger", "args": "backup"})).await;
        assert_eq!((triggered.status, &triggered.json()["number"]), (201, &json!(1)));
        let run = show().await["last"].clone();
        assert_eq!((&run["number"], &run["state"]), (&json!(1), &json!("starting")));
        assert_eq!(rig.hands.requests(), ["launch"]);
        let kill = send(json!({"action": "kill_run", "args": run["id"]})).await;
        assert!(kill.status == 204 || kill.problem().0 == 409, "{kill:?}");

        assert_eq!(send(json!({"action": "validate", "args": ["backup"]})).await.status, 204);
        assert_eq!(send(json!({"action": "validate", "args": "backup"})).await.status, 204);
        let wrong = send(json!({"action": "validate", "args": []})).await;
        assert_eq!(wrong.problem().0, 422);
        assert!(wrong.text.contains("broken.yaml:3:1"));
        assert_eq!(send(json!({"action": "reload", "args": {}})).await.status, 204);
        assert_eq!(send(json!({"action": "drain_nodes", "args": ["test"]})).await.status, 204);
        assert_eq!(rig.request("GET /api/v1/nodes", "").await.json()[0]["draining"], true);
        assert_eq!(send(json!({"action": "remove", "args": "backup"})).await.status, 204);
        for (event, status) in [
            (json!({"action": "remove", "args": "backup"}), 404),
            (json!({"action": "drain_nodes", "args": ["test", "here"]}), 404),
            (json!({"action": "drain_nodes"}), 422),
            (json!({"action": "explode"}), 422),
            (json!({"action": "pause"}), 422),
            (json!({"action": "pause", "args": 7}), 422),
            (json!({"action": "kill_run", "args": "x"}), 422),
            (json!({"action": "add", "args": {"job_name": "x"}}), 422),
            (json!({"action": "add", "args": {"job_name": "x", "job_def": {"cron_args": {}}}}), 422),
            (json!({"args": {}}), 400),
            (json!([]), 400),
        ] {
            assert_eq!(send(event.clone()).await.problem().0, status, "{event}");
        }
    });
}

/// Every path in the document exists and supports the listed methods.
#[test]
fn document_lists_existing_paths_and_methods() {
    with_rig("document", async |rig| {
        let document = rig.request("GET /openapi.json", "").await.json();
        assert_eq!(document["openapi"], "3.1.0");
        let paths = document["paths"].as_object().expect("a map");
        assert!(paths.len() >= 13, "{paths:?}");
        let mut names = BTreeSet::new();
        for operation in paths.values().flat_map(|methods| methods.as_object().expect("a map").values()) {
            assert!(names.insert(operation["operationId"].as_str().expect("a name")), "{operation}");
            for (status, response) in operation["responses"].as_object().expect("a map") {
                assert_ne!(response["description"], "", "{status} {operation}");
                // SideJob's interface has errors of its own form.
                let is_of_sidejob = status == "422" && operation["tags"][0] == "sidejob";
                let is_error = status.starts_with('4');
                assert!(
                    !is_error || is_of_sidejob || response["content"]["application/problem+json"].is_object(),
                    "{operation}"
                );
            }
        }
        for (path, methods) in paths {
            let uri = path.replace("{id}", "none").replace("{run}", "none").replace("{node}", "none");
            for method in methods.as_object().expect("a map").keys() {
                let method = method.to_uppercase();
                if path.ends_with("/token") || path.ends_with("/feed") {
                    // The first would replace the token of this test, and the second never ends.
                    continue;
                }
                let got = rig.request(&format!("{method} {uri}"), "").await;
                assert_ne!(got.status, 405, "{method} {path}");
                let is_unknown = got.status == 404 && got.text.contains("there is no path");
                assert!(!is_unknown, "{method} {path}");
            }
        }
    });
}
