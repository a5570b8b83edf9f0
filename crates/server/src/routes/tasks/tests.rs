//! Requests about tasks on a store that keeps none.

use crate::testing::with_rig;

#[test]
fn store_without_tasks_names_those_that_keep_them() {
    with_rig("no-tasks", async |rig| {
        for (line, body) in [
            ("GET /api/v1/tasks", ""),
            ("GET /api/v1/tasks/1", ""),
            ("POST /api/v1/tasks", r#"{"queue": "core", "class": "Sum"}"#),
            ("POST /api/v1/tasks/1/inports/in", r#"{"data": 1}"#),
            ("GET /api/v1/channels", ""),
            ("GET /api/v1/channels/shop", ""),
            ("POST /api/v1/channels/shop", r#"{"message": 1}"#),
            ("GET /api/v1/queues", ""),
            ("GET /api/v1/workers", ""),
        ] {
            let reply = rig.send(line, body).await;
            assert_eq!(reply.problem(), (501, "unsupported".to_owned()), "{line}");
            let hint = reply.json()["hint"].as_str().expect("a hint").to_owned();
            assert!(hint.contains("SQLite") && hint.contains("Redis"), "{hint}");
        }
        let reply = rig.send("GET /sidejob/jobs/1", "").await;
        assert_eq!((reply.status, reply.json()["error"].is_string()), (422, true));
    });
}
