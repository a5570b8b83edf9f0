//! Final states of runs, and their results afterwards.

use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::record::{OutputSummary, ProgramExit, Record, RecordKey, ResolvedProgram, Run};
use cronhold_core::run::Reason;
use cronhold_core::signal::Signal;
use cronhold_schedule::Span;
use serde_json::{Value, json};

use crate::fixture::{Fixture, HOST};

/// A final state and its expected result.
struct End {
    state: State,
    reason: Option<Reason>,
    exit: Option<ProgramExit>,
    written: Option<OutputSummary>,
    shown: (&'static str, Value, &'static str, &'static str),
}

fn written(text: &str) -> Option<OutputSummary> {
    Some(OutputSummary { bytes: text.len() as u64, tail: text.lines().map(str::to_owned).collect(), stderr: None })
}

fn signal(name: &str) -> Signal {
    Signal::parse(name).expect("a signal")
}

fn ends() -> Vec<End> {
    let end = |state, reason, exit, written, shown| End { state, reason, exit, written, shown };
    let (success, fail) = ("success", "fail");
    vec![
        end(
            State::Success,
            None,
            Some(ProgramExit::Code(0)),
            written("ok\ndone\n"),
            (success, json!(0), "ok\ndone\n", success),
        ),
        end(State::Success, None, Some(ProgramExit::Code(3)), written(""), (success, json!(3), "", success)),
        end(
            State::Failure,
            Some(Reason::ExitCode(7)),
            Some(ProgramExit::Code(7)),
            written("\"a\"\t\\ größe\u{7}\nno newline"),
            (fail, json!(7), "\"a\"\t\\ größe\u{7}\nno newline\n", fail),
        ),
        end(
            State::Failure,
            Some(Reason::Signal(signal("SIGSEGV"))),
            Some(ProgramExit::Signal(signal("SIGSEGV"))),
            written(""),
            (fail, json!(-11), "", fail),
        ),
        end(
            State::Failure,
            Some(Reason::Timeout),
            Some(ProgramExit::Signal(signal("SIGKILL"))),
            written(""),
            (fail, json!(-9), "", fail),
        ),
        end(
            State::Error,
            Some(Reason::NotLaunched("no such file".to_owned())),
            None,
            None,
            (fail, json!(null), "", fail),
        ),
        end(State::Error, Some(Reason::StartUnknown), None, None, ("frozen", json!(null), "", fail)),
        end(State::Error, Some(Reason::NodeLost), None, None, ("frozen", json!(null), "", fail)),
        end(State::Error, Some(Reason::KeeperLost), None, None, ("frozen", json!(null), "", fail)),
    ]
}

#[test]
fn each_final_state_has_its_result() {
    let fixture = Fixture::new();
    for (number, End { state, reason, exit, written, shown }) in ends().into_iter().enumerate() {
        let job = format!("job{number}");
        let mut run = fixture.running(&job);
        let first = fixture.rundata(run.id).expect("it is shown");
        (run.reason, run.exit, run.written) = (reason, exit, written);
        fixture.enter(&mut run, state);
        let after = fixture.time();

        let (status, retcode, output, word) = shown;
        let last = fixture.rundata(run.id).expect("it is shown");
        let expected = json!({
            "job_name": job, "start_time": first["start_time"], "host": HOST, "status": status,
            "retcode": retcode, "output": output, "duration": last["duration"],
        });
        assert_eq!(last, expected, "{run:?}");
        let start: f64 = first["start_time"].as_str().expect("a text").parse().expect("a number");
        let duration = last["duration"].as_f64().expect("a number");
        assert!(duration > 0.0 && start + duration <= after, "{start} and {duration} within {after}");

        assert_eq!(fixture.kind("rundata:active"), "none", "it is not active any more");
        let own = fixture.scores(&format!("results:{job}:{word}"));
        assert_eq!(own.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), [run.id.to_string()]);
        assert!(start + duration <= own[0].1 && own[0].1 <= after, "the score is when its end was stored");
        let general = fixture.scores(&format!("results:{word}"));
        assert_eq!(general.last(), own.last(), "the general results have it as well, as the latest");
        let other = if word == "fail" { "success" } else { "fail" };
        assert_eq!(fixture.kind(&format!("results:{job}:{other}")), "none");
    }
}

#[test]
fn run_that_starts_and_ends_in_one_commit_has_a_result() {
    let fixture = Fixture::new();
    let mut run = fixture.run("quick");
    let mut units = Vec::new();
    for state in [State::Starting, State::Running, State::Success] {
        fixture.move_on(&mut run, state);
        run.exit = (state == State::Success).then_some(ProgramExit::Code(0));
        run.work = Some(ResolvedProgram::Noop(Span::ZERO));
        let mut unit = fixture.putting(&[Record::Run(Arc::new(run.clone()))]);
        unit.compare[0].1 = units.last().map(|before: &cronhold_store::Unit| before.version);
        units.push(unit);
    }
    let done = cronhold_store::conformance::block_on(cronhold_store::Store::commit(&*fixture.store, units));
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    let shown = fixture.rundata(run.id).expect("it is shown");
    assert_eq!((&shown["status"], &shown["retcode"], &shown["host"]), (&json!("success"), &json!(0), &json!(HOST)));
    assert!(shown["start_time"].is_string() && shown["duration"].as_f64().is_some_and(|duration| duration >= 0.0));
    assert_eq!(fixture.kind("rundata:active"), "none");
    assert_eq!(fixture.members("results:quick:success"), [run.id.to_string()]);
}

#[test]
fn result_of_lost_run_has_lines_from_its_output() {
    let fixture = Fixture::new();
    let mut run = fixture.running("backup");
    let text: Vec<u8> =
        (1..=12).flat_map(|line| format!("line {line}\n").into_bytes()).chain(*b"bad \xff\xe2\x82").collect();
    assert_eq!(fixture.append(run.id, 0, &text), Ok(text.len() as u64));
    run.reason = Some(Reason::NodeLost);
    fixture.enter(&mut run, State::Error);
    let expected: String = (4..=12).map(|line| format!("line {line}\n")).chain(["bad ???\n".to_owned()]).collect();
    assert_eq!(fixture.rundata(run.id).expect("it is shown")["output"], expected);
}

#[test]
fn result_reads_missing_lines_from_the_output() {
    let fixture = Fixture::with("lines=3");
    let shown = |tail: &[&str], bytes: u64| {
        let mut run = fixture.running("backup");
        assert_eq!(fixture.append(run.id, 0, b"one\ntwo\nthree\nfour\n"), Ok(19));
        run.written =
            Some(OutputSummary { bytes, tail: tail.iter().map(|line| (*line).to_owned()).collect(), stderr: None });
        fixture.enter(&mut run, State::Success);
        fixture.rundata(run.id).expect("it is shown")["output"].clone()
    };
    assert_eq!(shown(&["four"], 19), "two\nthree\nfour\n");
    assert_eq!(shown(&["1", "2", "3", "4"], 8), "2\n3\n4\n");
}

#[test]
fn changed_state_moves_a_run_between_results() {
    let fixture = Fixture::new();
    let mut run = fixture.running("backup");
    run.exit = Some(ProgramExit::Code(1));
    run.written = written("said\n");
    fixture.enter(&mut run, State::Failure);
    let ended = fixture.rundata(run.id).expect("it is shown");
    let score = fixture.scores("results:fail");
    run.reason = Some(Reason::ByOperator("known".to_owned()));
    for (state, status, word) in [
        (State::Success, "success", "success"),
        (State::Error, "fail", "fail"),
        (State::Failure, "fail", "fail"),
        (State::Success, "success", "success"),
    ] {
        fixture.enter(&mut run, state);
        let mut expected = ended.clone();
        expected["status"] = json!(status);
        assert_eq!(fixture.rundata(run.id), Some(expected), "only the status is another");
        assert_eq!(fixture.scores(&format!("results:{word}")), score, "it keeps its time");
        assert_eq!(fixture.scores(&format!("results:backup:{word}")), score);
        let other = if word == "fail" { "success" } else { "fail" };
        assert_eq!(fixture.kind(&format!("results:{other}")), "none");
        assert_eq!(fixture.kind(&format!("results:backup:{other}")), "none");
    }
    // Cronken has no such state.
    fixture.enter(&mut run, State::Skipped);
    for key in ["rundata", "results:success", "results:backup:success", "results:fail", "results:backup:fail"] {
        assert_eq!(fixture.kind(key), "none", "{key} of a run that counts as skipped");
    }
    fixture.enter(&mut run, State::Failure);
    let again = fixture.rundata(run.id).expect("it is shown again");
    assert_eq!((&again["status"], &again["output"]), (&json!("fail"), &json!("said\n")));
    assert_eq!(fixture.members("results:backup:fail"), [run.id.to_string()]);
}

#[test]
fn retry_has_its_own_result() {
    let fixture = Fixture::new();
    let mut first = fixture.running("backup");
    first.exit = Some(ProgramExit::Code(1));
    fixture.move_on(&mut first, State::Failure);
    let mut second = fixture.run("backup");
    (second.attempt, second.retry_of, first.retried_by) = (2, Some(first.id), Some(second.id));
    fixture.put(&[Record::Run(Arc::new(first.clone())), Record::Run(Arc::new(second.clone()))]);
    assert_eq!(fixture.rundata(second.id), None, "it waits");
    fixture.enter(&mut second, State::Starting);
    assert_eq!(fixture.members("rundata:active"), [second.id.to_string()]);
    second.exit = Some(ProgramExit::Code(0));
    fixture.enter(&mut second, State::Success);
    assert_eq!(fixture.members("results:backup:fail"), [first.id.to_string()]);
    assert_eq!(fixture.members("results:backup:success"), [second.id.to_string()]);
}

#[test]
fn pruned_run_leaves_no_keys() {
    let fixture = Fixture::new();
    let end = |state: State| {
        let mut run = fixture.running("backup");
        assert_eq!(fixture.append(run.id, 0, b"a\nb"), Ok(3));
        fixture.enter(&mut run, state);
        run
    };
    let kept = end(State::Success);
    let pruned: Vec<Run> = [State::Success, State::Failure, State::Error].map(end).into();
    for run in &pruned {
        fixture.delete(RecordKey::Run(run.id));
        assert_eq!(fixture.rundata(run.id), None);
        assert_eq!(fixture.kind(&format!("rundata:output:{}", run.id)), "none");
    }
    for key in ["results:success", "results:backup:success"] {
        assert_eq!(fixture.members(key), [kept.id.to_string()]);
    }
    for key in ["results:fail", "results:backup:fail", "rundata:active"] {
        assert_eq!(fixture.kind(key), "none", "{key}");
    }
    assert!(fixture.rundata(kept.id).is_some(), "other runs are kept");
}

/// A run of a job that is renamed has its results under the new name, with their times.
#[test]
fn results_of_a_renamed_job_move_to_its_new_name() {
    let fixture = Fixture::new();
    let mut runs: Vec<Run> = [State::Success, State::Failure]
        .map(|state| {
            let mut run = fixture.running("old");
            fixture.enter(&mut run, state);
            run
        })
        .into();
    let before = ["success", "fail"].map(|word| fixture.scores(&format!("results:old:{word}")));
    let general = ["success", "fail"].map(|word| fixture.scores(&format!("results:{word}")));
    for run in &mut runs {
        run.job = crate::fixture::job_id("new");
        fixture.put(&[Record::Run(Arc::new(run.clone()))]);
        assert_eq!(fixture.rundata(run.id).expect("it is shown")["job_name"], "new");
    }
    assert_eq!(["success", "fail"].map(|word| fixture.scores(&format!("results:new:{word}"))), before);
    assert_eq!(["success", "fail"].map(|word| fixture.scores(&format!("results:{word}"))), general);
    for key in ["results:old:success", "results:old:fail", "rundata:active"] {
        assert_eq!(fixture.kind(key), "none", "{key}");
    }
}
