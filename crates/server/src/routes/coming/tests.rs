//! Coming occurrences of all jobs, on a real node.

use serde_json::Value;

use crate::testing::{ServerFixture, with_rig};

async fn put(rig: &ServerFixture, id: &str, job: &str) {
    let got = rig.send(&format!("PUT /api/v1/jobs/{id}"), job).await;
    assert_eq!(got.status, 201, "{got:?}");
}

/// The listed runs as `JOB NOMINAL`, with `*` for stored runs, and whether the list was cut.
async fn coming(rig: &ServerFixture, query: &str) -> (Vec<String>, bool) {
    let got = rig.request(&format!("GET /api/v1/coming{query}"), "").await;
    assert_eq!(got.status, 200, "{query}: {got:?}");
    let list = got.json();
    let items = list["items"].as_array().expect("a list").iter();
    let line = |item: &Value| {
        let mark = if item["run"].is_null() { "" } else { "*" };
        assert!(item["due"].as_str() >= item["nominal"].as_str(), "{item}");
        format!("{}{mark} {}", item["job"].as_str().expect("a job"), &item["nominal"].as_str().expect("a time")[11..16])
    };
    (items.map(line).collect(), list["cut"] == true)
}

// The tests start at 2027-01-15T08:00:00Z.
#[test]
fn coming_runs_of_all_jobs_are_listed_by_time() {
    with_rig("coming", async |rig| {
        put(rig, "half", r#"{"program": "true", "schedule": "15,45 * * * *"}"#).await;
        put(rig, "day", r#"{"program": "true", "schedule": "30 9 * * *"}"#).await;
        put(rig, "never", r#"{"program": "true"}"#).await;
        put(rig, "off", r#"{"program": "true", "enabled": false, "schedule": "* * * * *"}"#).await;
        let made = rig.send("POST /api/v1/jobs/never/runs", r#"{"at": "2027-01-15T08:20:00Z"}"#).await;
        assert_eq!(made.status, 201, "{made:?}");
        let hour = ["half 08:15", "never* 08:20", "half 08:45"].map(str::to_owned).to_vec();
        assert_eq!(coming(rig, "").await, (hour.clone(), false));
        assert_eq!(coming(rig, "?limit=2").await, (hour[..2].to_vec(), true));
        let (more, cut) = coming(rig, "?for=2h").await;
        assert_eq!((more.len(), cut), (6, false), "{more:?}");
        assert_eq!(more[4], "day 09:30", "{more:?}");
        assert_eq!(coming(rig, "?for=10m").await, (Vec::new(), false));
    });
}

#[test]
fn paused_jobs_are_not_coming_until_the_pause_ends() {
    with_rig("coming-paused", async |rig| {
        put(rig, "half", r#"{"program": "true", "schedule": "15,45 * * * *"}"#).await;
        let pause = async |path: &str, body: &str| {
            let got = rig.send(&format!("POST /api/v1{path}"), body).await;
            assert_eq!(got.status, 204, "{got:?}");
        };
        pause("/jobs/half/pause", r#"{"until": "2027-01-15T08:30:00Z"}"#).await;
        assert_eq!(coming(rig, "").await.0, ["half 08:45"]);
        pause("/jobs/half/pause", "{}").await;
        assert_eq!(coming(rig, "").await.0, [""; 0]);
        pause("/jobs/half/resume", "{}").await;
        pause("/pause", r#"{"until": "2027-01-15T08:50:00Z"}"#).await;
        assert_eq!(coming(rig, "?for=2h").await.0, ["half 09:15", "half 09:45"]);
    });
}

#[test]
fn invalid_windows_are_refused() {
    with_rig("coming-refused", async |rig| {
        for query in ["?for=soon", "?for=0s", "?for=400d", "?limit=0", "?limit=1001", "?until=1h"] {
            assert_eq!(rig.request(&format!("GET /api/v1/coming{query}"), "").await.status, 400, "{query}");
        }
    });
}
