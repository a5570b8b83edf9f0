//! Nodes as other programs see them, and what other programs leave behind. The heartbeat interval is short, so that
//! tests can wait for it.

use cronhold_core::State;
use cronhold_core::record::{ForeignRun, Record, RecordKey};
use cronhold_schedule::Instant;
use cronhold_store::{UnitReceipt, UnitRefusal};
use cronhold_store_redis::testing::until;
use serde_json::{Value, json};

use crate::fixture::{Fixture, HOST, NS, job_id};

const SHORT: &str = "heartbeat=50ms&stale=200ms";

/// Metadata as a Python node writes it when a run starts, without the fields that are not known yet.
fn start_foreign(fixture: &Fixture, id: &str, job: &str, age: f64) -> String {
    let start = format!("{:.6}", fixture.time() - age);
    let text = json!({ "job_name": job, "start_time": start, "host": "draco", "status": "running" }).to_string();
    fixture.at("HSET", "rundata", &[id, &text]);
    fixture.at("ZADD", "rundata:active", &[&start, id]);
    start
}

fn end_foreign(fixture: &Fixture, id: &str, job: &str, start: &str) {
    let text = json!({
        "job_name": job, "start_time": start, "host": "draco", "status": "success",
        "retcode": 0, "output": "", "duration": 0.1,
    });
    fixture.at("HSET", "rundata", &[id, &text.to_string()]);
    fixture.at("ZREM", "rundata:active", &[id]);
    fixture.at("ZADD", &format!("results:{job}:success"), &[start, id]);
}

#[test]
fn nodes_are_listed_as_instances() {
    let fixture = Fixture::new();
    let now = fixture.time();
    assert_eq!(fixture.kind("instances"), "zset");
    let instances = fixture.scores("instances");
    assert_eq!(instances.len(), 1);
    let instance: Value = serde_json::from_str(&instances[0].0).expect("JSON");
    assert_eq!(instance, json!({ "host": HOST, "ip": "127.0.0.1" }));
    assert!((now - instances[0].1).abs() < 5.0, "{} at {now}", instances[0].1);
    for _ in 0..3 {
        fixture.beat(&[]);
    }
    assert_eq!(fixture.scores("instances"), instances, "not every heartbeat refreshes the instance");
}

#[test]
fn heartbeats_refresh_runs_and_instances() {
    let fixture = Fixture::with(SHORT);
    let run = fixture.running("backup");
    let first = (fixture.scores("rundata:active"), fixture.scores("instances"));
    until("both are listed", || {
        fixture.beat(&[]);
        let (runs, nodes) = (fixture.scores("rundata:active"), fixture.scores("instances"));
        (runs[0].0 == run.id.to_string() && runs[0].1 > first.0[0].1 && nodes[0].1 > first.1[0].1).then_some(())
    });
    assert_eq!(fixture.kind("locks:__reaper__"), "none", "the reaper lock is released");
}

#[test]
fn dead_instances_are_removed() {
    let fixture = Fixture::with(SHORT);
    let gone = r#"{"host":"draco","ip":"10.0.0.9"}"#;
    fixture.at("ZADD", "instances", &["1000.5", gone]);
    until("it is removed", || {
        fixture.beat(&[]);
        (fixture.scores("instances").len() == 1).then_some(())
    });
    assert!(!fixture.members("instances").contains(&gone.to_owned()));
}

#[test]
fn stale_foreign_runs_are_frozen() {
    let fixture = Fixture::with(SHORT);
    let start = start_foreign(&fixture, "aaaa", "report", 60.0);
    fixture.at("RPUSH", "rundata:output:aaaa", &["one\n", "two\n"]);
    start_foreign(&fixture, "bbbb", "report", 0.0);
    fixture.at("ZADD", "rundata:active", &["1000.5", "nonsense"]);
    let ours = fixture.running("report");
    let frozen = until("it is frozen", || {
        fixture.beat(&[]);
        // The other node keeps reporting this one as alive.
        let now = format!("{:.6}", fixture.time());
        fixture.at("ZADD", "rundata:active", &["XX", &now, "bbbb"]);
        let text = fixture.at("HGET", "rundata", &["aaaa"]);
        let shown: Value = serde_json::from_str(text.as_str().expect("a text")).expect("JSON");
        (shown["status"] == "frozen").then_some(shown)
    });
    let duration = frozen["duration"].as_f64().expect("a number");
    assert!(duration >= 60.0, "{duration}");
    let expected = json!({
        "job_name": "report", "start_time": start, "host": "draco", "status": "frozen",
        "retcode": null, "output": "one\ntwo\n", "duration": duration,
    });
    assert_eq!(frozen, expected);
    assert_eq!(fixture.members("results:fail"), ["aaaa"]);
    assert_eq!(fixture.members("results:report:fail"), ["aaaa"]);
    let mut active = fixture.members("rundata:active");
    active.sort();
    let mut alive = vec![ours.id.to_string(), "bbbb".to_owned()];
    alive.sort();
    assert_eq!(active, alive, "runs without metadata are removed");
}

#[test]
fn reaper_lock_of_cronken_is_respected() {
    let fixture = Fixture::with(SHORT);
    fixture.at("SET", "locks:__reaper__", &["python"]);
    fixture.at("ZADD", "instances", &["1000.5", "old"]);
    let first = fixture.scores("instances");
    until("a heartbeat has passed", || {
        fixture.beat(&[]);
        (fixture.scores("instances")[1].1 > first[1].1).then_some(())
    });
    assert_eq!(fixture.members("instances")[0], "old");
    assert_eq!(fixture.at("GET", "locks:__reaper__", &[]), json!("python"));
    fixture.at("DEL", "locks:__reaper__", &[]);
    until("it is our turn", || {
        fixture.beat(&[]);
        (fixture.members("instances").len() == 1).then_some(())
    });
}

#[test]
fn latest_foreign_run_is_read_and_compared() {
    let fixture = Fixture::with("peers=cronken");
    let key = RecordKey::Foreign(job_id("a/report"));
    let found = || match fixture.load(&key) {
        Some((version, Record::Foreign(run))) => Some((version, (*run).clone())),
        None => None,
        Some(other) => panic!("{other:?} is not a foreign run"),
    };
    let compare = |version| {
        let mut unit = fixture.unit();
        unit.compare = vec![(key.clone(), version)];
        fixture.commit(unit)
    };
    // Our own runs and runs of other jobs do not count.
    let mut ours = fixture.running("a/report");
    fixture.enter(&mut ours, State::Success);
    start_foreign(&fixture, "cccc", "report", 1.0);
    assert_eq!(found(), None);
    assert_eq!(compare(None), Ok(UnitReceipt::default()));

    let start = start_foreign(&fixture, "aaaa", "a/report", 5.0);
    let (version, run) = found().expect("it runs");
    let micros: i64 = start.replace('.', "").parse().expect("digits");
    let expected = ForeignRun {
        job: job_id("a/report"),
        system: "Cronken",
        run: "aaaa".to_owned(),
        host: "draco".to_owned(),
        started: Instant::from_micros(micros),
        is_running: true,
    };
    assert_eq!(run, expected);
    assert_eq!(compare(None), Err(UnitRefusal::Conflict(key.clone())));
    assert_eq!(compare(Some(version)), Ok(UnitReceipt::default()));

    end_foreign(&fixture, "aaaa", "a/report", &start);
    let (ended, run) = found().expect("it has run");
    assert_eq!(run, ForeignRun { is_running: false, ..expected });
    assert_ne!(ended, version);
    assert_eq!(compare(Some(version)), Err(UnitRefusal::Conflict(key.clone())));

    let later = start_foreign(&fixture, "bbbb", "a/report", 1.0);
    end_foreign(&fixture, "bbbb", "a/report", &later);
    assert_eq!(found().expect("it has run").1.run, "bbbb", "the latest counts");
    fixture.at("DEL", "rundata", &[]);
    assert_eq!(found(), None);
    fixture.command(&["SET", &format!("{NS}:rundata"), "something else"]);
    assert_eq!(found(), None, "what cannot be read is not there");
}
