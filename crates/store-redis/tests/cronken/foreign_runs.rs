//! Lists of runs that foreign nodes have left in Cronken's keys, mixed with ours.

use cronhold_core::State;
use cronhold_core::record::ProgramExit;
use cronhold_core::signal::Signal;
use cronhold_schedule::{Instant, Span};
use cronhold_store::conformance::block_on;
use cronhold_store::{SharedRun, SharedRunState, Store};
use serde_json::json;

use crate::fixture::{Fixture, NS};

/// More runs than one call scans.
const MANY: u32 = 450;

/// Writes many finished runs in sequence.
const WRITE_MANY: &str = r#"
for number = 0, ARGV[1] - 1 do
  local id, start = string.format('run%04d', number), tostring(1000 + number)
  redis.call('HSET', KEYS[1], id, '{"job_name":"report","start_time":"' .. start .. '","status":"success"}')
  redis.call('ZADD', KEYS[2], start, id)
  redis.call('ZADD', KEYS[3], start, id)
end
return ARGV[1]"#;

fn found(fixture: &Fixture, job: Option<&str>, limit: usize) -> Vec<SharedRun> {
    let shared = fixture.store.shared().expect("Redis is shared");
    block_on(shared.foreign_runs(job, limit)).expect("runs are read")
}

fn ids(fixture: &Fixture, job: Option<&str>, limit: usize) -> Vec<String> {
    found(fixture, job, limit).into_iter().map(|run| run.id).collect()
}

/// Writes an active run as a Python node does, without the fields that are not known yet.
fn begin(fixture: &Fixture, id: &str, job: &str, start: u32) {
    let text =
        json!({ "job_name": job, "start_time": format!("{start}.250000"), "host": "draco", "status": "running" });
    fixture.at("HSET", "rundata", &[id, &text.to_string()]);
    fixture.at("ZADD", "rundata:active", &[&start.to_string(), id]);
}

/// Writes a finished run.
fn end(fixture: &Fixture, id: &str, job: &str, start: u32, took: u32, code: i32) {
    let status = if code == 0 { "success" } else { "fail" };
    let text = json!({
        "job_name": job, "start_time": format!("{start}.250000"), "host": "draco", "status": status,
        "retcode": code, "output": "one\ntwo\n", "duration": took,
    });
    fixture.at("HSET", "rundata", &[id, &text.to_string()]);
    fixture.at("ZREM", "rundata:active", &[id]);
    for set in [format!("results:{status}"), format!("results:{job}:{status}")] {
        fixture.at("ZADD", &set, &[&(start + took).to_string(), id]);
    }
}

#[test]
fn foreign_runs_have_all_fields() {
    let fixture = Fixture::with("peers=cronken");
    assert_eq!(found(&fixture, None, 10), []);
    end(&fixture, "aaaa", "a/report", 100, 5, 0);
    end(&fixture, "bbbb", "größe", 110, 7, -15);
    begin(&fixture, "cccc", "größe", 120);
    fixture.at("RPUSH", "rundata:output:cccc", &["so far\n", "no end"]);
    let run = SharedRun {
        id: "aaaa".to_owned(),
        job: "a/report".to_owned(),
        host: "draco".to_owned(),
        started: Instant::from_millis(100_250),
        state: SharedRunState::Success,
        exit: Some(ProgramExit::Code(0)),
        took: Some(Span::from_secs(5)),
        tail: vec!["one".to_owned(), "two".to_owned()],
    };
    let shot = SharedRun {
        id: "bbbb".to_owned(),
        job: "größe".to_owned(),
        started: Instant::from_millis(110_250),
        state: SharedRunState::Failure,
        exit: Some(ProgramExit::Signal(Signal::TERM)),
        took: Some(Span::from_secs(7)),
        ..run.clone()
    };
    let running = SharedRun {
        id: "cccc".to_owned(),
        started: Instant::from_millis(120_250),
        state: SharedRunState::Running,
        exit: None,
        took: None,
        tail: vec!["so far".to_owned(), "no end".to_owned()],
        ..shot.clone()
    };
    assert_eq!(found(&fixture, None, 10), [running.clone(), shot.clone(), run.clone()]);
    assert_eq!(found(&fixture, Some("größe"), 10), [running.clone(), shot]);
    assert_eq!(found(&fixture, Some("a/report"), 10), [run]);
    assert_eq!(found(&fixture, Some("report"), 10), [], "a part of a name is another name");
    assert_eq!(found(&fixture, None, 1), [running]);
}

#[test]
fn own_runs_are_not_foreign() {
    let fixture = Fixture::with("peers=cronken");
    let mut done = fixture.running("report");
    fixture.enter(&mut done, State::Success);
    let mut failed = fixture.running("report");
    fixture.enter(&mut failed, State::Failure);
    fixture.running("report");
    assert_eq!(fixture.members("rundata:active").len(), 1, "ours are in the same sets");
    assert_eq!(found(&fixture, None, 10), []);
    begin(&fixture, "aaaa", "report", 100);
    end(&fixture, "bbbb", "report", 90, 1, 0);
    assert_eq!(ids(&fixture, None, 10), ["aaaa", "bbbb"]);
    assert_eq!(ids(&fixture, Some("report"), 10), ["aaaa", "bbbb"]);
}

#[test]
fn latest_finished_runs_are_listed_by_start() {
    let fixture = Fixture::with("peers=cronken");
    begin(&fixture, "slow", "backup", 1);
    end(&fixture, "long", "backup", 10, 90, 0);
    end(&fixture, "bad", "backup", 50, 10, 3);
    end(&fixture, "short", "backup", 40, 10, 0);
    assert_eq!(ids(&fixture, None, 10), ["bad", "short", "long", "slow"]);
    assert_eq!(ids(&fixture, None, 3), ["bad", "long", "slow"], "`short` ended before the others");
    assert_eq!(ids(&fixture, Some("backup"), 1), ["slow"], "what runs is never left out for what has ended");
}

#[test]
fn many_foreign_runs_are_read_in_parts() {
    let fixture = Fixture::with("peers=cronken");
    // A few of our runs precede theirs, so that one batch is not full of theirs.
    for _ in 0..3 {
        let mut ours = fixture.running("report");
        fixture.enter(&mut ours, State::Success);
    }
    let (keys, many) = (["rundata", "results:success", "results:report:success"], MANY.to_string());
    let [rundata, general, own] = keys.map(|key| format!("{NS}:{key}"));
    fixture.command(&["EVAL", WRITE_MANY, "3", &rundata, &general, &own, &many]);
    for job in [None, Some("report")] {
        let expected: Vec<String> = (0..MANY).rev().map(|number| format!("run{number:04}")).collect();
        assert_eq!(ids(&fixture, job, 1_000), expected);
        assert_eq!(ids(&fixture, job, 300), expected[..300]);
    }
}

#[test]
fn unreadable_foreign_runs_are_skipped() {
    let fixture = Fixture::with("peers=cronken");
    end(&fixture, "good", "report", 100, 1, 0);
    begin(&fixture, "runs", "report", 110);
    for (id, text) in
        [("a", "not JSON"), ("b", "{}"), ("c", r#"{"job_name":"report","start_time":"x","status":"fail"}"#)]
    {
        fixture.at("HSET", "rundata", &[id, text]);
        fixture.at("ZADD", "results:fail", &["200", id]);
        fixture.at("ZADD", "rundata:active", &["200", id]);
    }
    fixture.at("ZADD", "results:success", &["300", "nobody knows it"]);
    assert_eq!(ids(&fixture, None, 10), ["runs", "good"]);

    // Output of programs may contain bytes that are not UTF-8.
    let store = "local text = string.gsub(redis.call('HGET', KEYS[1], 'good'), 'two', '\\255')
        return redis.call('HSET', KEYS[1], 'good', text)";
    fixture.command(&["EVAL", store, "1", &format!("{NS}:rundata")]);
    assert_eq!(found(&fixture, None, 10)[1].tail, ["one", "\u{fffd}"]);

    // A key of the wrong type yields nothing, and does not affect the others.
    fixture.at("DEL", "results:success", &[]);
    fixture.at("SET", "results:success", &["something else"]);
    fixture.at("SET", "rundata:output:runs", &["something else"]);
    assert_eq!(ids(&fixture, None, 10), ["runs"]);
    fixture.at("DEL", "rundata", &[]);
    fixture.at("SET", "rundata", &["something else"]);
    assert_eq!(found(&fixture, None, 10), []);
}
