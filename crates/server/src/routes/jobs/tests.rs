//! Creating, listing, pausing and removing jobs.

use serde_json::{Value, json};

use crate::testing::{ServerFixture, with_rig};

async fn put(rig: &ServerFixture, id: &str, definition: &Value) {
    let got = rig.send(&format!("PUT /api/v1/jobs/{id}"), &definition.to_string()).await;
    assert!(matches!(got.status, 200 | 201), "{got:?}");
}

#[test]
fn job_is_created_shown_and_removed() {
    with_rig("jobs-round-trip", async |rig| {
        let path = "/api/v1/jobs/reports%2Fprices";
        let job = json!({"description": "Loads prices.\nEvery day.", "labels": ["eod"], "program": ["load", "--all"],
            "schedule": "0 18 * * Mon-Fri", "params": {"region": {"default": "us"}}});
        let created = rig.send(&format!("PUT {path}"), &job.to_string()).await;
        assert_eq!(created.status, 201, "{created:?}");
        let shown = rig.request(&format!("GET {path}"), "").await;
        assert_eq!((shown.status, &shown.text), (200, &created.text));
        let shown_job = shown.json();
        assert_eq!(shown_job["id"], "reports/prices");
        assert_eq!((&shown_job["description"], &shown_job["text"]), (&json!("Loads prices."), &job["description"]));
        assert_eq!(
            (&shown_job["source"], &shown_job["revision"], &shown_job["active"]),
            (&json!("api"), &json!(1), &json!(0))
        );
        assert_eq!(shown_job["schedule"], "0 18 * * 1-5");
        assert_eq!(shown_job["next"], "2027-01-15T18:00:00Z");
        assert_eq!(shown_job["schedules"][0]["words"], "At 18:00 on Monday through Friday");
        assert_eq!(shown_job["definition"]["labels"], json!(["eod"]));

        // The YAML in the response defines the same job.
        let again = format!("Content-Type: application/yaml\n\n{}", shown_job["yaml"].as_str().expect("a text"));
        let same = rig.request(&format!("PUT {path}"), &again).await;
        assert_eq!((same.status, same.json()["revision"].as_u64()), (200, Some(1)), "{same:?}");
        assert_eq!(same.headers["etag"], shown.headers["etag"]);

        assert_eq!(rig.request(&format!("DELETE {path}"), "").await.status, 204);
        assert_eq!(rig.request(&format!("GET {path}"), "").await.problem(), (404, "not_found".to_owned()));
        assert_eq!(rig.request(&format!("DELETE {path}"), "").await.problem(), (404, "not_found".to_owned()));
    });
}

#[test]
fn preconditions_prevent_lost_updates() {
    with_rig("jobs-conditions", async |rig| {
        let put = async |condition: &str, program: &str| {
            let more = format!("Content-Type: application/json\n{condition}\n\n{{\"program\": \"{program}\"}}");
            rig.request("PUT /api/v1/jobs/j", &more).await
        };
        assert_eq!(put("If-Match: *", "a").await.problem(), (404, "not_found".to_owned()));
        let first = put("If-None-Match: *", "a").await;
        assert_eq!(first.status, 201);
        let rejected = put("If-None-Match: *", "b").await;
        assert_eq!(rejected.problem(), (409, "conflict".to_owned()));
        assert_eq!(rejected.json()["detail"], "the job `j` already exists");
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
        assert_eq!(rig.request("DELETE /api/v1/jobs/j", &format!("If-Match: {tag}")).await.problem().0, 412);
        assert_eq!(rig.request("DELETE /api/v1/jobs/j", "If-Match: *").await.status, 204);
    });
}

#[test]
fn all_mistakes_are_reported_with_positions() {
    with_rig("jobs-mistakes", async |rig| {
        let body = "progam: echo\nschedule: 61 * * * *\nlabels: 7\n";
        let got = rig.request("PUT /api/v1/jobs/j", &format!("Content-Type: application/yaml\n\n{body}")).await;
        assert_eq!(got.problem(), (422, "invalid".to_owned()));
        let detail = got.json()["detail"].as_str().expect("a text").to_owned();
        for part in ["j:1:1: ", "`program`", "j:2:11: ", "j:3:9: "] {
            assert!(detail.contains(part), "{part} is not in {detail}");
        }
        for (body, part) in [
            (r#"{"program": "echo {{ x }}"}"#, "x"),
            (r#"{"program": "x", "schedule": {"cron": "0 0 * * *", "calendar": "nowhere"}}"#, "nowhere"),
            (r#"{"program": "x", "conditions": [{"after": {"job": "other"}}]}"#, "other"),
            (r#"{"program": "x", "program": "y"}"#, "program"),
            ("[]", "map"),
            ("null", "a job needs at least a program"),
        ] {
            let got = rig.send("PUT /api/v1/jobs/j", body).await;
            assert_eq!(got.problem().0, 422, "{body}");
            assert!(got.text.contains(part), "{}", got.text);
        }
        assert_eq!(rig.send("PUT /api/v1/jobs/j", "{program: x}").await.problem().0, 400, "not JSON");
        assert_eq!(rig.request("PUT /api/v1/jobs/j", "").await.problem().0, 415);
        assert_eq!(rig.request("GET /api/v1/jobs/j", "").await.status, 404, "no job was created");

        put(rig, "other", &json!({"program": "x"})).await;
        put(rig, "j", &json!({"program": "x", "conditions": [{"after": {"job": "other"}}]})).await;
    });
}

#[test]
fn list_is_filtered_and_paged() {
    with_rig("jobs-list", async |rig| {
        for (id, label) in [("a%2F1", "x"), ("a%2F2", "y"), ("c", "x"), ("d", "y")] {
            put(rig, id, &json!({"program": {"noop": "0s"}, "labels": [label]})).await;
        }
        let list = async |query: &str| {
            let page = rig.request(&format!("GET /api/v1/jobs{query}"), "").await.json();
            let jobs = page["jobs"].as_array().expect("a list").iter();
            let ids: Vec<String> = jobs.map(|job| job["id"].as_str().expect("an id").to_owned()).collect();
            (ids.join(" "), page["next"].as_str().unwrap_or("-").to_owned())
        };
        let check = async |query: &str, ids: &str, next: &str| {
            assert_eq!(list(query).await, (ids.to_owned(), next.to_owned()), "{query}");
        };
        // Only an invalid file defines `broken`.
        check("", "a/1 a/2 broken c d", "-").await;
        check("?match=a/*", "a/1 a/2", "-").await;
        check("?match=b*", "broken", "-").await;
        check("?match=%3F", "c d", "-").await;
        check("?label=x", "a/1 c", "-").await;
        check("?label=x&match=c", "c", "-").await;
        check("?limit=2", "a/1 a/2", "a/2").await;
        check("?limit=2&after=a/2", "broken c", "c").await;
        check("?limit=2&after=c", "d", "-").await;
        check("?after=a/!", "a/1 a/2 broken c d", "-").await;
        check("?after=broken", "c d", "-").await;
        check("?limit=5&after=zzz", "", "-").await;

        let all = rig.request("GET /api/v1/jobs", "").await.json();
        assert_eq!(all["jobs"][2]["errors"][0]["line"], 3, "{all}");
        assert_eq!((&all["jobs"][2]["source"], &all["jobs"][2]["revision"]), (&json!(""), &json!(0)));
        assert_eq!(all["errors"][0]["file"], "calendars/days.txt");
        let broken = rig.request("GET /api/v1/jobs/broken", "").await;
        assert_eq!(broken.problem().0, 404);
        assert!(broken.text.contains("broken.yaml:3:1"), "{}", broken.text);
    });
}

#[test]
fn pauses_are_shown_with_author_and_reason() {
    with_rig("jobs-pauses", async |rig| {
        put(rig, "j", &json!({"program": {"noop": "0s"}, "schedule": "@every 1h"})).await;
        let show = async || rig.request("GET /api/v1/jobs/j", "").await.json();
        let as_anna = "X-Cronhold-User: anna\nContent-Type: application/json\n\n{\"why\": \"tea\"}";
        assert_eq!(rig.request("POST /api/v1/jobs/j/pause", as_anna).await.status, 204);
        let shown_job = show().await;
        assert_eq!(
            (&shown_job["paused"], &shown_job["pause"]["by"], &shown_job["pause"]["why"]),
            (&json!(true), &json!("anna"), &json!("tea"))
        );
        assert_eq!(shown_job["pause"]["everything"], false);
        assert_eq!(shown_job["next"], Value::Null, "nothing is due during a pause");
        // Nothing to do: the first pause and its reason stay.
        assert_eq!(rig.request("POST /api/v1/jobs/j/pause", "").await.status, 200);
        assert_eq!(show().await["pause"]["why"], "tea");
        assert_eq!(rig.request("POST /api/v1/jobs/j/resume", "").await.status, 204);
        assert_eq!(rig.request("POST /api/v1/jobs/j/resume", "").await.status, 200);
        assert_eq!(show().await["paused"], false);

        assert_eq!(rig.send("POST /api/v1/pause", "{\"why\": \"moving\"}").await.status, 204);
        let shown_job = show().await;
        assert_eq!((&shown_job["paused"], &shown_job["pause"]["everything"]), (&json!(true), &json!(true)));
        let list = rig.request("GET /api/v1/jobs", "").await.json();
        assert_eq!((&list["pause"]["why"], &list["pause"]["by"]), (&json!("moving"), &json!("api")));
        assert_eq!(rig.request("POST /api/v1/resume", "").await.status, 204);
        assert_eq!(show().await["paused"], false);

        assert_eq!(rig.request("POST /api/v1/jobs/none/pause", "").await.problem().0, 404);
        let long = json!({"why": "x".repeat(1_001)}).to_string();
        assert_eq!(rig.send("POST /api/v1/jobs/j/pause", &long).await.problem().0, 422);
    });
}
