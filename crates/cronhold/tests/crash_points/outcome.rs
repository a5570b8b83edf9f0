//! The checks after a crash: one outcome per occurrence, at most one start per run, correct exit codes and outputs, no
//! running programs, and free locks.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::record::{ProgramExit, Run, SkipSpan};
use cronhold_schedule::Instant;

use super::points::Loses;
use super::processes::{eventually, processes};
use super::sandbox::{Sandbox, Stored};
use super::workload::{ASKED_EXIT, LOCK, Traces, Workload, output};

/// Runs all checks. No run may start at this time.
pub(crate) fn assert_right(name: &str, loses: Loses, workload: Workload, sandbox: &Sandbox) {
    let (stored, traces) = (sandbox.stored(), Traces::read(sandbox.dir()));
    let runs = stored.runs();
    let runs: Vec<&Run> = runs.iter().map(AsRef::as_ref).collect();
    let case = format!("{name} {workload:?}");
    assert_one_outcome(&case, &runs, &stored.spans());
    for run in &runs {
        assert_run(&case, loses, run, &stored, &traces);
    }
    let started: usize = runs.iter().map(|run| traces.of(run).0).sum();
    assert_eq!(started, traces.starts(), "{case}: a program ran for a run that is not stored");
    assert_eq!(traces.overlaps, [] as [&str; 0], "{case}: two programs under one lock");
    let asked = runs.iter().filter(|run| run.job.as_str() == "asked").count();
    let expected = if workload.is_asked() { workload.deaths() } else { 0 };
    assert_eq!(asked, expected, "{case}: one run for each request");
    let lost = runs.iter().filter(|run| run.state == State::Error).count();
    match loses {
        Loses::Nothing => assert_eq!(lost, 0, "{case}: nothing is lost"),
        Loses::ARun(_) => assert!(lost >= workload.deaths(), "{case}: only {lost} were lost"),
        Loses::PerhapsARun(_) => {}
    }
    assert_nothing_runs(&case, &runs);
    assert_eq!(stored.holder(LOCK), None, "{case}: the lock is free");
}

/// Asserts that each occurrence has one record: a first attempt, or a span of skips that contains it.
fn assert_one_outcome(case: &str, runs: &[&Run], spans: &[Arc<SkipSpan>]) {
    let mut ends: BTreeMap<(&str, Instant), Instant> = BTreeMap::new();
    let runs = runs.iter().filter(|run| run.schedule.is_some() && run.attempt == 1);
    let runs = runs.map(|run| (&run.job, run.nominal, run.nominal));
    for (job, from, to) in runs.chain(spans.iter().map(|span| (&span.job, span.range.from, span.range.to))) {
        let before = ends.insert((job.as_str(), from), to);
        assert_eq!(before, None, "{case}: two outcomes of {job} at {from}");
    }
    for (((job, _), to), ((next_job, from), _)) in ends.iter().zip(ends.iter().skip(1)) {
        assert!(job != next_job || to < from, "{case}: two outcomes of {job} at {from}");
    }
}

/// Asserts what holds for each run after any crash.
fn assert_run(case: &str, loses: Loses, run: &Run, stored: &Stored, traces: &Traces) {
    let (starts, ends) = traces.of(run);
    let details = format!("{case}: {}#{}: {starts} starts, {ends} ends, {:?}", run.job, run.number.0, run.log);
    let count = |state: fn(State) -> bool| run.log.iter().filter(|transition| state(transition.state)).count();
    assert!(starts <= 1 && ends <= starts, "{details}");
    assert!(count(|state| state == State::Starting) <= 1, "{details}");
    assert!(count(State::is_finished) <= 1, "{details}");
    let reason = run.reason.as_ref().map(ToString::to_string);
    match run.state {
        State::Waiting | State::Skipped => assert_eq!(starts, 0, "{details}"),
        State::Success | State::Failure => {
            let code = if run.job.as_str() == "asked" { ASKED_EXIT } else { 0 };
            assert_eq!(run.state == State::Success, code == 0, "{details}");
            assert_eq!(run.exit, Some(ProgramExit::Code(code)), "{details}");
            assert_eq!((starts, ends), (1, 1), "{details}");
            let (expected, written) = (output(run), run.written.as_ref().map(|written| written.bytes));
            assert_eq!(stored.output(run), expected, "{details}");
            assert_eq!(written, Some(expected.len() as u64), "{details}");
        }
        State::Error => {
            let (Loses::ARun(expected) | Loses::PerhapsARun(expected)) = loses else { panic!("{details}") };
            assert_eq!(reason.as_deref(), Some(expected), "{details}");
            assert!(starts == 0 || expected == "keeper lost", "{details}");
            assert_eq!(run.exit, None, "{details}");
        }
        _ => panic!("{details}"),
    }
}

/// Asserts that no process of any run is left.
fn assert_nothing_runs(case: &str, runs: &[&Run]) {
    let marks: Vec<String> = runs.iter().map(|run| format!("CRONHOLD_RUN_ID={}", run.id)).collect();
    let is_of_ours = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| marks.iter().any(|mark| mark.as_bytes() == entry))
    };
    eventually(&format!("{case}: no program is left"), || !processes().any(is_of_ours));
}
