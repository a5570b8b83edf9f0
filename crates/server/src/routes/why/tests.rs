//! Explanations, next occurrences, holes, and plans of backfills.

use serde_json::{Value, json};

use crate::testing::{START, ServerFixture, with_rig};

async fn get(rig: &ServerFixture, path: &str) -> Value {
    let got = rig.request(&format!("GET /api/v1/{path}"), "").await;
    assert_eq!(got.status, 200, "{path}: {got:?}");
    got.json()
}

async fn put(rig: &ServerFixture, id: &str, job: &str) {
    let got = rig.send(&format!("PUT /api/v1/jobs/{id}"), job).await;
    assert_eq!(got.status, 201, "{got:?}");
}

fn text(answer: &Value) -> String {
    let lines = answer["lines"].as_array().expect("lines").iter();
    lines
        .map(|line| format!("{}: {}\n", line["tone"].as_str().expect("a tone"), line["text"].as_str().expect("text")))
        .collect()
}

#[test]
fn why_explains_pauses_and_waiting_runs() {
    with_rig("why", async |rig| {
        put(rig, "a", r#"{"program": "true", "schedule": "0 3 * * *"}"#).await;
        let now = get(rig, "jobs/a/why").await;
        assert_eq!((&now["job"], &now["at"]), (&json!("a"), &Value::Null));
        assert!(text(&now).contains("03:00"), "{now}");
        rig.send("POST /api/v1/jobs/a/pause", r#"{"why": "tea"}"#).await;
        let paused = text(&get(rig, "jobs/a/why").await);
        assert!(paused.starts_with("answer: ") && paused.contains("tea"), "{paused}");
        let then = get(rig, "jobs/a/why?at=2020-01-01T03:00:00Z").await;
        assert_eq!(then["at"], "2020-01-01T03:00:00Z");
        assert!(!text(&then).is_empty());
        // The explanation names the run that blocks another one.
        put(rig, "b", r#"{"program": "true", "overlap": "queue", "lock": "l"}"#).await;
        rig.send("POST /api/v1/jobs/b/runs", "{}").await;
        rig.send("POST /api/v1/jobs/b/runs", "{}").await;
        let waiting = text(&get(rig, "jobs/b/why").await);
        assert!(waiting.contains("#1") && waiting.contains("#2"), "{waiting}");
        for (path, status) in [("jobs/none/why", 404), ("jobs/a/why?at=soon", 400), ("jobs/a/why?when=1", 400)] {
            assert_eq!(rig.request(&format!("GET /api/v1/{path}"), "").await.problem().0, status, "{path}");
        }
    });
}

/// A job that only an invalid file defines is explained by its mistakes.
#[test]
fn why_shows_mistakes_in_the_file() {
    with_rig("why-mistakes", async |rig| {
        let expected = "answer: The file of `broken` is invalid: its current content does not apply.\n\
                        detail: broken.yaml:3:1: unknown key `progam`\nadvice: did you mean `program`?\n";
        assert_eq!(text(&get(rig, "jobs/broken/why").await), expected);
        put(rig, "broken", r#"{"program": "true", "schedule": "0 3 * * *"}"#).await;
        let stored = text(&get(rig, "jobs/broken/why").await);
        assert!(stored.starts_with(expected) && stored.contains("03:00"), "{stored}");
    });
}

#[test]
fn next_merges_all_enabled_schedules() {
    with_rig("next", async |rig| {
        let schedules = r#"[{"cron": "0 3 * * *", "timezone": "Europe/Berlin", "name": "night"},
            {"cron": "0 12 * * *", "name": "noon"}, {"cron": "* * * * *", "enabled": false}]"#;
        put(rig, "a", &format!(r#"{{"program": "true", "schedule": {schedules}}}"#)).await;
        let next = get(rig, "jobs/a/next?count=3&from=2026-03-28T20:00:00Z").await;
        let times: Vec<(&str, &str, &str)> = next
            .as_array()
            .expect("a list")
            .iter()
            .map(|at| {
                let text = |key: &str| at[key].as_str().expect("text");
                (text("at"), text("schedule"), text("local"))
            })
            .collect();
        assert_eq!(
            times,
            [
                ("2026-03-29T01:00:00Z", "night", "2026-03-29T03:00:00+02:00"),
                ("2026-03-29T12:00:00Z", "noon", "2026-03-29T12:00:00+00:00"),
                ("2026-03-30T01:00:00Z", "night", "2026-03-30T03:00:00+02:00"),
            ]
        );
        assert_eq!(get(rig, "jobs/a/next").await.as_array().expect("a list").len(), 5);
        put(rig, "b", r#"{"program": "true"}"#).await;
        assert_eq!(get(rig, "jobs/b/next").await, json!([]));
        for (path, status) in [("jobs/none/next", 404), ("jobs/a/next?count=0", 400), ("jobs/a/next?from=x", 400)] {
            assert_eq!(rig.request(&format!("GET /api/v1/{path}"), "").await.problem().0, status, "{path}");
        }
    });
}

#[test]
fn holes_are_found() {
    with_rig("holes", async |rig| {
        put(rig, "a", r#"{"program": "true", "schedule": "* * * * *"}"#).await;
        put(rig, "b", r#"{"program": "true"}"#).await;
        let all = get(rig, "holes").await;
        assert_eq!((&all["jobs"], &all["found"]), (&json!(2), &json!(0)), "{all}");
        assert_eq!(get(rig, "holes?after=a").await["jobs"], 1);
        // A cursor that advanced without a record leaves a hole.
        lose_ten_minutes(rig).await;
        let holes =
            get(rig, &format!("holes?job=a&from={}", START.minus(cronhold_schedule::Span::from_secs(3_600)))).await;
        assert_eq!(holes["found"], 10, "{holes}");
        assert!(text(&holes).contains("has no record of 10 occurrences"), "{holes}");
        assert_eq!(get(rig, "holes").await["found"], 10);
        for (path, status) in [
            ("holes?job=none", 404),
            ("holes?from=x", 400),
            ("holes?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", 400),
        ] {
            assert_eq!(rig.request(&format!("GET /api/v1/{path}"), "").await.problem().0, status, "{path}");
        }
    });
}

/// Moves the start of a cursor back by ten minutes, as if their occurrences had been claimed without a record.
async fn lose_ten_minutes(rig: &ServerFixture) {
    use cronhold_core::decision::RecordChange;
    use cronhold_core::record::{Cursor, Record, RecordVersion};
    use cronhold_schedule::Span;
    use cronhold_store::{Query, Unit};
    let store = &rig.app.store;
    let page = store.page(&Query::Cursors { after: None }, 1).await.expect("the store works");
    let stored = page.records.into_iter().next().expect("a cursor");
    let key = stored.record.key();
    let Record::Cursor(cursor) = stored.record else { panic!("not a cursor") };
    let next = cursor.next.expect("a next time");
    let earlier = Cursor { since: next.minus(Span::from_secs(600)).minus(Span::from_secs(1)), ..(*cursor).clone() };
    let writer = store.enroll().await.expect("the store works");
    let unit = Unit {
        version: RecordVersion::new(writer.0, 1),
        compare: vec![(key, Some(stored.version))],
        changes: vec![RecordChange::Put(Record::Cursor(std::sync::Arc::new(earlier)))],
        take: Vec::new(),
        free: Vec::new(),
    };
    store.commit(vec![unit]).await.pop().expect("a result").expect("no concurrent writer");
}

#[test]
fn backfill_plan_shows_outcomes() {
    with_rig("backfill", async |rig| {
        let job = r#"{"program": "true", "params": {"date": {}}, "overlap": "allow",
            "schedule": {"cron": "0 3 * * *", "name": "night"}}"#;
        put(rig, "a", job).await;
        let path = "jobs/a/backfill?from=2026-01-01T03:00:00Z&to=2026-01-03T03:00:00Z";
        let before = get(rig, path).await;
        let items = before["items"].as_array().expect("a list");
        let days: Vec<&str> = items.iter().map(|item| item["args"]["date"].as_str().expect("a day")).collect();
        assert_eq!(days, ["2026-01-01", "2026-01-02", "2026-01-03"]);
        assert!(items.iter().all(|item| item["state"].is_null() && item["schedule"] == "night"), "{before}");
        assert_eq!(before["cut"], false);
        // Request the second occurrence twice.
        let item = &items[1];
        let body = json!({"at": item["at"], "args": item["args"]});
        let more = format!(
            "Idempotency-Key: {}\nContent-Type: application/json\n\n{body}",
            item["key"].as_str().expect("a key")
        );
        for status in [201, 200] {
            assert_eq!(rig.request("POST /api/v1/jobs/a/runs", &more).await.status, status);
        }
        let states: Vec<Value> = get(rig, path).await["items"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|item| item["state"].clone())
            .collect();
        assert_eq!(states, [Value::Null, json!("starting"), Value::Null]);
        let many = get(rig, "jobs/a/backfill?from=2020-01-01T00:00:00Z&to=2026-01-03T03:00:00Z").await;
        assert_eq!((many["items"].as_array().map(Vec::len), &many["cut"]), (Some(1_000), &json!(true)));
        for (path, status) in [
            ("jobs/none/backfill?from=2026-01-01T00:00:00Z", 404),
            ("jobs/a/backfill", 400),
            ("jobs/a/backfill?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", 400),
        ] {
            assert_eq!(rig.request(&format!("GET /api/v1/{path}"), "").await.problem().0, status, "{path}");
        }
    });
}
