//! Nodes as other programs see them, and what other programs leave behind. The heartbeat interval is short, so that
//! tests can wait for it.

use cronhold_core::State;
use cronhold_core::record::{ForeignRun, Record, RecordKey};
use cronhold_schedule::Instant;
use cronhold_store::{UnitReceipt, UnitRefusal};
use cronhold_store_redis::testing::until;
use serde_json::{Value, json};

use crate::place::{HOST, NS, Place, job_id};

const SHORT: &str = "heartbeat=50ms&stale=200ms";

/// Metadata as a Python node writes it when a run starts, without the fields that are not known yet.
fn start_foreign(place: &Place, id: &str, job: &str, age: f64) -> String {
    let start = format!("{:.6}", place.time() - age);
    let text = json!({ "job_name": job, "start_time": start, "host": "draco", "status": "running" }).to_string();
    place.at("HSET", "rundata", &[id, &text]);
    place.at("ZADD", "rundata:active", &[&start, id]);
    start
}

fn end_foreign(place: &Place, id: &str, job: &str, start: &str) {
    let text = json!({
        "job_name": job, "start_time": start, "host": "draco", "status": "success",
        "retcode": 0, "output": "", "duration": 0.1,
    });
    place.at("HSET", "rundata", &[id, &text.to_string()]);
    place.at("ZREM", "rundata:active", &[id]);
    place.at("ZADD", &format!("results:{job}:success"), &[start, id]);
}

#[test]
fn nodes_are_listed_as_instances() {
    let place = Place::new();
    let now = place.time();
    assert_eq!(place.kind("instances"), "zset");
    let instances = place.scores("instances");
    assert_eq!(instances.len(), 1);
    let instance: Value = serde_json::from_str(&instances[0].0).expect("JSON");
    assert_eq!(instance, json!({ "host": HOST, "ip": "127.0.0.1" }));
    assert!((now - instances[0].1).abs() < 5.0, "{} at {now}", instances[0].1);
    for _ in 0..3 {
        place.beat(&[]);
    }
    assert_eq!(place.scores("instances"), instances, "not every heartbeat refreshes the instance");
}

#[test]
fn heartbeats_refresh_runs_and_instances() {
    let place = Place::with(SHORT);
    let run = place.running("backup");
    let first = (place.scores("rundata:active"), place.scores("instances"));
    until("both are listed", || {
        place.beat(&[]);
        let (runs, nodes) = (place.scores("rundata:active"), place.scores("instances"));
        (runs[0].0 == run.id.to_string() && runs[0].1 > first.0[0].1 && nodes[0].1 > first.1[0].1).then_some(())
    });
    assert_eq!(place.kind("locks:__reaper__"), "none", "the reaper lock is released");
}

#[test]
fn dead_instances_are_removed() {
    let place = Place::with(SHORT);
    let gone = r#"{"host":"draco","ip":"10.0.0.9"}"#;
    place.at("ZADD", "instances", &["1000.5", gone]);
    until("it is removed", || {
        place.beat(&[]);
        (place.scores("instances").len() == 1).then_some(())
    });
    assert!(!place.members("instances").contains(&gone.to_owned()));
}

#[test]
fn stale_foreign_runs_are_frozen() {
    let place = Place::with(SHORT);
    let start = start_foreign(&place, "aaaa", "report", 60.0);
    place.at("RPUSH", "rundata:output:aaaa", &["one\n", "two\n"]);
    start_foreign(&place, "bbbb", "report", 0.0);
    place.at("ZADD", "rundata:active", &["1000.5", "nonsense"]);
    let ours = place.running("report");
    let frozen = until("it is frozen", || {
        place.beat(&[]);
        // The other node keeps reporting this one as alive.
        let now = format!("{:.6}", place.time());
        place.at("ZADD", "rundata:active", &["XX", &now, "bbbb"]);
        let text = place.at("HGET", "rundata", &["aaaa"]);
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
    assert_eq!(place.members("results:fail"), ["aaaa"]);
    assert_eq!(place.members("results:report:fail"), ["aaaa"]);
    let mut active = place.members("rundata:active");
    active.sort();
    let mut alive = vec![ours.id.to_string(), "bbbb".to_owned()];
    alive.sort();
    assert_eq!(active, alive, "runs without metadata are removed");
}

#[test]
fn reaper_lock_of_cronken_is_respected() {
    let place = Place::with(SHORT);
    place.at("SET", "locks:__reaper__", &["python"]);
    place.at("ZADD", "instances", &["1000.5", "old"]);
    let first = place.scores("instances");
    until("a heartbeat has passed", || {
        place.beat(&[]);
        (place.scores("instances")[1].1 > first[1].1).then_some(())
    });
    assert_eq!(place.members("instances")[0], "old");
    assert_eq!(place.at("GET", "locks:__reaper__", &[]), json!("python"));
    place.at("DEL", "locks:__reaper__", &[]);
    until("it is our turn", || {
        place.beat(&[]);
        (place.members("instances").len() == 1).then_some(())
    });
}

#[test]
fn latest_foreign_run_is_read_and_compared() {
    let place = Place::with("peers=cronken");
    let key = RecordKey::Foreign(job_id("a/report"));
    let found = || match place.load(&key) {
        Some((version, Record::Foreign(run))) => Some((version, (*run).clone())),
        None => None,
        Some(other) => panic!("{other:?} is not a foreign run"),
    };
    let compare = |version| {
        let mut unit = place.unit();
        unit.compare = vec![(key.clone(), version)];
        place.commit(unit)
    };
    // Our own runs and runs of other jobs do not count.
    let mut ours = place.running("a/report");
    place.enter(&mut ours, State::Success);
    start_foreign(&place, "cccc", "report", 1.0);
    assert_eq!(found(), None);
    assert_eq!(compare(None), Ok(UnitReceipt::default()));

    let start = start_foreign(&place, "aaaa", "a/report", 5.0);
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

    end_foreign(&place, "aaaa", "a/report", &start);
    let (ended, run) = found().expect("it has run");
    assert_eq!(run, ForeignRun { is_running: false, ..expected });
    assert_ne!(ended, version);
    assert_eq!(compare(Some(version)), Err(UnitRefusal::Conflict(key.clone())));

    let later = start_foreign(&place, "bbbb", "a/report", 1.0);
    end_foreign(&place, "bbbb", "a/report", &later);
    assert_eq!(found().expect("it has run").1.run, "bbbb", "the latest counts");
    place.at("DEL", "rundata", &[]);
    assert_eq!(found(), None);
    place.ask(&["SET", &format!("{NS}:rundata"), "something else"]);
    assert_eq!(found(), None, "what cannot be read is not there");
}
