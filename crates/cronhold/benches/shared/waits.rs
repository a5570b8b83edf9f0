//! Runs that wait for another run: the time from its end to the start of the program that has waited, compared with a bare
//! start.

use std::fs;
use std::path::Path;

use cronhold_daemon::bench::samples::{SampleSet, number};
use cronhold_daemon::clock::SystemClock;
use cronhold_engine::MachineClock;
use cronhold_schedule::{Instant, Span};
use serde_json::Value;

use crate::programs::bare_lateness;
use crate::report::{Report, Target};
use crate::rig::block_on;

/// Pairs of runs.
const ROUNDS: usize = 200;
/// Target for the 99th percentile above a bare start, in milliseconds.
const WAKE_MOST: f64 = 20.0;
/// How often a command is repeated until its run has ended.
const LOOKS_MAX: usize = 2_000;
const LOOK: Span = Span::from_millis(5);

/// Carries out a command of the command line on a daemon, with `-o json`.
pub(crate) type Caller<'a> = &'a dyn Fn(&[&str]) -> Option<Value>;

/// Measures pairs of runs: one that waits, requested by `second`, and the one that it waits for, requested by `first`. The
/// jobs are put from files in `dir`; `nodes` is what each of them requires of its node.
pub(crate) fn wake(
    report: &mut Report,
    what: &str,
    dir: &Path,
    (first, second): (Caller<'_>, Caller<'_>),
    nodes: [&str; 2],
) {
    let own = bare_lateness();
    let up = format!("program: {{noop: true}}\noverlap: allow\nparams: [round]\n{}", nodes[0]);
    let down = format!(
        "program: [/bin/date, +%s%N]\noverlap: allow\nparams: [round]\nconditions: [{{after: up}}]\n{}",
        nodes[1]
    );
    for (name, text, call) in [("up", up, first), ("down", down, second)] {
        let file = dir.join(format!("{name}.yaml"));
        fs::write(&file, text).expect("a file");
        call(&["add", name, "-f", &file.display().to_string()]).expect("the job is added");
    }
    let mut late = Vec::new();
    for round in 0..ROUNDS {
        let arg = format!("round={round}");
        let waiting = second(&["run", "down", &arg]).expect("a run that waits");
        first(&["run", "up", &arg, "--wait"]).expect("a run");
        let ended = first(&["show", &format!("up#{}", round + 1)]).expect("the run");
        let ended = ended["times"]["finished"].as_str().and_then(|text| Instant::parse(text).ok()).expect("it ended");
        let printed = printed_by(second, waiting["id"].as_str().expect("an id"));
        late.push(number((printed - ended.micros()).max(0).unsigned_abs()) / 1_000.0);
    }
    let late = SampleSet::new(late);
    report.note(format!("{what}: median above a bare start"), late.median() - own.median(), "ms");
    let most = Target::AtMost(WAKE_MOST);
    report.compare(format!("{what}: p99 above a bare start"), late.percentile(99) - own.percentile(99), "ms", most);
}

/// The time that the program of a run has printed, in microseconds, when it has ended.
fn printed_by(call: Caller<'_>, run: &str) -> i64 {
    for _ in 0..LOOKS_MAX {
        let found = call(&["show", run]).expect("the run");
        if found["state"] == "success" {
            let nanos = found["tail"][0].as_str().and_then(|line| line.trim().parse::<i64>().ok());
            return nanos.expect("a time") / 1_000;
        }
        block_on(async { SystemClock::new().expect("a timer").sleep(LOOK).await });
    }
    panic!("the run {run} has not ended");
}
