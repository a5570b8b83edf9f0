//! `cronhold import cronken`: imports from one Redis into another store, through a daemon or without one.

use cronhold_store_redis::testing::RedisServer;

use crate::sandbox::Sandbox;

const GOOD: &str =
    r#"{"cron_args": {"cronstring": "0 3 * * 0"}, "job_args": {"cmd": "echo {{ hi", "lock": true, "ttl": 20}}"#;
const PAUSED: &str = r#"{"cron_args": {"second": "*/2"}, "job_args": {"cmd": "true", "lock": false, "ttl": 10},
    "job_state": {"paused": true}}"#;

#[test]
fn jobs_are_imported_with_their_settings() {
    let (sandbox, old) = (Sandbox::new("import"), RedisServer::start());
    let from = old.url_with("namespace={old}");
    for (name, text) in [("good", GOOD), ("paused", PAUSED), ("bad", r#"{"cron_args": {}}"#), ("a#b", GOOD)] {
        old.cli(&["hset", "{old}:jobs", name, text]);
    }
    let before = old.cli(&["keys", "*"]);
    let import = |more: &[&str]| sandbox.at_store(&[&["import", "cronken", "--from", &from], more].concat());

    let result = import(&["--dry-run"]).exits(1);
    assert!(result.err.contains("4 definitions found: 2 would be imported, 2 not imported"), "{result:?}");
    assert_eq!(sandbox.json(&["list"]), serde_json::json!([]), "a dry run imports nothing");
    let result = import(&["--prefix", "old/"]).exits(1);
    assert!(result.err.contains("4 definitions found: 2 imported, 2 not imported"), "{result:?}");
    let result =
        result.prints("`#` cannot be in a job's id").prints("`job_args` is missing").prints("Monday").omits("***");
    assert!(result.out.contains("old/paused"), "{result:?}");
    let good = &sandbox.json(&["show", "old/good"])["definition"];
    assert_eq!((&good["lock"], &good["ttl"]), (&true.into(), &"20s".into()), "{good}");
    assert_eq!(sandbox.json(&["show", "old/paused"])["paused"], true);
    assert_eq!(sandbox.json(&["show", "old/good"])["paused"], false);
    import(&["--prefix", "old/"]).exits(1).prints("2 already imported");
    import(&["--prefix", "old/", "--pause"]).exits(1).prints("another job with this name");
    assert_eq!(old.cli(&["keys", "*"]), before, "the source is unchanged");
}

#[test]
fn jobs_are_imported_into_a_daemon_with_its_own_store() {
    let (sandbox, old) = (Sandbox::new("import-daemon"), RedisServer::start());
    old.cli(&["hset", "{cronken}:jobs", "good", GOOD]);
    let data = sandbox.path("sqlite");
    let data = data.to_str().expect("a text");
    let node = sandbox.start_at(&format!("sqlite:{data}.db"), "sqlite", &[]);
    node.wait_until_ready();
    let import = ["--data", data, "import", "cronken", "--as-cronken", "--from", &old.url(), "-o", "json"];
    let result = sandbox.run_command(&import).exits(0);
    assert!(result.out.contains(r#""outcome": "imported""#), "{result:?}");
    sandbox.run_command(&["--data", data, "next", "--help"]).exits(0);
    sandbox.run_command(&["--data", data, "list"]).exits(0).prints("good");
    let gone = ["--data", data, "import", "cronken", "--from", "redis://127.0.0.1:1?timeout=200ms"];
    sandbox.run_command(&gone).exits(3).prints("127.0.0.1:1");
    sandbox.run_command(&["--data", data, "import", "cronken", "--from", "sqlite:x.db"]).exits(2);
}
