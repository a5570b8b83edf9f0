//! Jobs over HTTP.

use serde_json::{Value, json};

use crate::testing::{ServerFixture, with_rig};

async fn put(rig: &ServerFixture, id: &str, definition: &Value) {
    let got = rig.send(&format!("PUT /api/v1/jobs/{id}"), &definition.to_string()).await;
    assert!(matches!(got.status, 200 | 201), "{got:?}");
}

#[test]
fn put_show_remove() {
    with_rig("jobs-round-trip", async |rig| {
        let path = "/api/v1/jobs/reports%2Fprices";
        let job = json!({"description": "Loads prices.\nEvery day.", "labels": ["eod"], "program": ["load", "--all"],
            "schedule": "0 18 * * Mon-Fri", "params": {"region": {"default": "us"}}});
        let made = rig.send(&format!("PUT {path}"), &job.to_string()).await;
        assert_eq!(made.status, 201, "{made:?}");
        let shown = rig.ask(&format!("GET {path}"), "").await;
        assert_eq!((shown.status, &shown.text), (200, &made.text));
        let told = shown.json();
        assert_eq!(told["id"], "reports/prices");
        assert_eq!((&told["description"], &told["text"]), (&json!("Loads prices."), &job["description"]));
        assert_eq!((&told["source"], &told["revision"], &told["active"]), (&json!("api"), &json!(1), &json!(0)));
        assert_eq!(told["schedule"], "0 18 * * 1-5");
        assert_eq!(told["next"], "2027-01-15T18:00:00Z");
        assert_eq!(told["schedules"][0]["words"], "At 18:00 on Monday through Friday");
        assert_eq!(told["definition"]["labels"], json!(["eod"]));

        // What is shown as YAML is the same job.
        let again = format!("Content-Type: application/yaml\n\n{}", told["yaml"].as_str().expect("a text"));
        let same = rig.ask(&format!("PUT {path}"), &again).await;
        assert_eq!((same.status, same.json()["revision"].as_u64()), (200, Some(1)), "{same:?}");
        assert_eq!(same.headers["etag"], shown.headers["etag"]);

        assert_eq!(rig.ask(&format!("DELETE {path}"), "").await.status, 204);
        assert_eq!(rig.ask(&format!("GET {path}"), "").await.problem(), (404, "not_found".to_owned()));
        assert_eq!(rig.ask(&format!("DELETE {path}"), "").await.problem(), (404, "not_found".to_owned()));
    });
}

#[test]
fn only_what_was_seen_is_changed() {
    with_rig("jobs-conditions", async |rig| {
        let put = async |condition: &str, program: &str| {
            let more = format!("Content-Type: application/json\n{condition}\n\n{{\"program\": \"{program}\"}}");
            rig.ask("PUT /api/v1/jobs/j", &more).await
        };
        assert_eq!(put("If-Match: *", "a").await.problem(), (404, "not_found".to_owned()));
        let first = put("If-None-Match: *", "a").await;
        assert_eq!(first.status, 201);
        let refused = put("If-None-Match: *", "b").await;
        assert_eq!(refused.problem(), (409, "conflict".to_owned()));
        assert_eq!(refused.json()["detail"], "the job `j` already exists");
        let tag = first.headers["etag"].to_str().expect("a text").to_owned();
        let second = put(&format!("If-Match: {tag}"), "b").await;
        assert_eq!((second.status, second.json()["revision"].as_u64()), (200, Some(2)));
        assert_ne!(second.headers["etag"], tag);
        let late = put(&format!("If-Match: {tag}"), "c").await;
        assert_eq!(late.problem(), (412, "changed".to_owned()));
        assert!(late.json()["hint"].is_string());
        assert_eq!(put("If-Match: *", "c").await.status, 200);
        for bad in [
            "If-Match: x",
            "If-Match: \"x-1\"",
            "If-Match: W/\"1\"",
            "If-None-Match: \"x\"",
            "If-Match: *\nIf-None-Match: *",
        ] {
            assert_eq!(put(bad, "d").await.problem(), (400, "bad_request".to_owned()), "{bad}");
        }
        assert_eq!(rig.ask("DELETE /api/v1/jobs/j", &format!("If-Match: {tag}")).await.problem().0, 412);
        assert_eq!(rig.ask("DELETE /api/v1/jobs/j", "If-Match: *").await.status, 204);
    });
}

#[test]
fn all_mistakes_are_told_at_their_places() {
    with_rig("jobs-mistakes", async |rig| {
        let body = "progam: echo\nschedule: 61 * * * *\nlabels: 7\n";
        let got = rig.ask("PUT /api/v1/jobs/j", &format!("Content-Type: application/yaml\n\n{body}")).await;
        assert_eq!(got.problem(), (422, "invalid".to_owned()));
        let detail = got.json()["detail"].as_str().expect("a text").to_owned();
        for part in ["j:1:1: ", "`program`", "j:2:11: ", "j:3:9: "] {
            assert!(detail.contains(part), "{part} is not in {detail}");
        }
        for (body, part) in [
            (r#"{"program": "echo {{ x }}"}"#, "x"),
            (r#"{"program": "x", "schedule": {"cron": "0 0 * * *", "calendar": "nowhere"}}"#, "nowhere"),
            (r#"{"program": "x", "conditions": [{"after": {"job": "nobody"}}]}"#, "nobody"),
            (r#"{"program": "x", "program": "y"}"#, "program"),
            ("[]", "map"),
            ("null", "a job needs at least a program"),
        ] {
            let got = rig.send("PUT /api/v1/jobs/j", body).await;
            assert_eq!(got.problem().0, 422, "{body}");
            assert!(got.text.contains(part), "{}", got.text);
        }
        assert_eq!(rig.send("PUT /api/v1/jobs/j", "{program: x}").await.problem().0, 400, "that is not JSON");
        assert_eq!(rig.ask("PUT /api/v1/jobs/j", "").await.problem().0, 415);
        assert_eq!(rig.ask("GET /api/v1/jobs/j", "").await.status, 404, "nothing of all that was taken");

        put(rig, "nobody", &json!({"program": "x"})).await;
        put(rig, "j", &json!({"program": "x", "conditions": [{"after": {"job": "nobody"}}]})).await;
    });
}

#[test]
fn lists_page_by_page() {
    with_rig("jobs-list", async |rig| {
        for (id, label) in [("a%2F1", "x"), ("a%2F2", "y"), ("c", "x"), ("d", "y")] {
            put(rig, id, &json!({"program": {"noop": "0s"}, "labels": [label]})).await;
        }
        let list = async |query: &str| {
            let told = rig.ask(&format!("GET /api/v1/jobs{query}"), "").await.json();
            let jobs = told["jobs"].as_array().expect("a list").iter();
            let ids: Vec<String> = jobs.map(|job| job["id"].as_str().expect("an id").to_owned()).collect();
            (ids.join(" "), told["next"].as_str().unwrap_or("-").to_owned())
        };
        let told = async |query: &str, ids: &str, next: &str| {
            assert_eq!(list(query).await, (ids.to_owned(), next.to_owned()), "{query}");
        };
        // Of `broken` there is only a file with mistakes.
        told("", "a/1 a/2 broken c d", "-").await;
        told("?match=a/*", "a/1 a/2", "-").await;
        told("?match=b*", "broken", "-").await;
        told("?match=%3F", "c d", "-").await;
        told("?label=x", "a/1 c", "-").await;
        told("?label=x&match=c", "c", "-").await;
        told("?limit=2", "a/1 a/2", "a/2").await;
        told("?limit=2&after=a/2", "broken c", "c").await;
        told("?limit=2&after=c", "d", "-").await;
        told("?after=a/!", "a/1 a/2 broken c d", "-").await;
        told("?after=broken", "c d", "-").await;
        told("?limit=5&after=zzz", "", "-").await;

        let all = rig.ask("GET /api/v1/jobs", "").await.json();
        assert_eq!(all["jobs"][2]["errors"][0]["line"], 3, "{all}");
        assert_eq!((&all["jobs"][2]["source"], &all["jobs"][2]["revision"]), (&json!(""), &json!(0)));
        assert_eq!(all["errors"][0]["file"], "calendars/days.txt");
        let broken = rig.ask("GET /api/v1/jobs/broken", "").await;
        assert_eq!(broken.problem().0, 404);
        assert!(broken.text.contains("broken.yaml:3:1"), "{}", broken.text);
    });
}

#[test]
fn pauses_are_told() {
    with_rig("jobs-pauses", async |rig| {
        put(rig, "j", &json!({"program": {"noop": "0s"}, "schedule": "@every 1h"})).await;
        let look = async || rig.ask("GET /api/v1/jobs/j", "").await.json();
        let as_anna = "X-Cronhold-User: anna\nContent-Type: application/json\n\n{\"why\": \"tea\"}";
        assert_eq!(rig.ask("POST /api/v1/jobs/j/pause", as_anna).await.status, 204);
        let told = look().await;
        assert_eq!(
            (&told["paused"], &told["pause"]["by"], &told["pause"]["why"]),
            (&json!(true), &json!("anna"), &json!("tea"))
        );
        assert_eq!(told["pause"]["everything"], false);
        assert_eq!(rig.ask("POST /api/v1/jobs/j/pause", "").await.problem(), (409, "conflict".to_owned()));
        assert_eq!(rig.ask("POST /api/v1/jobs/j/resume", "").await.status, 204);
        assert_eq!(rig.ask("POST /api/v1/jobs/j/resume", "").await.problem().0, 409);
        assert_eq!(look().await["paused"], false);

        assert_eq!(rig.send("POST /api/v1/pause", "{\"why\": \"moving\"}").await.status, 204);
        let told = look().await;
        assert_eq!((&told["paused"], &told["pause"]["everything"]), (&json!(true), &json!(true)));
        let list = rig.ask("GET /api/v1/jobs", "").await.json();
        assert_eq!((&list["pause"]["why"], &list["pause"]["by"]), (&json!("moving"), &json!("api")));
        assert_eq!(rig.ask("POST /api/v1/resume", "").await.status, 204);
        assert_eq!(look().await["paused"], false);

        assert_eq!(rig.ask("POST /api/v1/jobs/nobody/pause", "").await.problem().0, 404);
        let long = json!({"why": "x".repeat(1_001)}).to_string();
        assert_eq!(rig.send("POST /api/v1/jobs/j/pause", &long).await.problem().0, 422);
    });
}
