//! Thousands of paused schedules are resumed at once. What they owe must not delay a job that is due every second. Test
//! binaries of different stores include this file as a module.

use std::collections::BTreeSet;

use cronhold_schedule::Instant;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::processes::eventually;

/// Number of jobs whose occurrences come while everything is paused.
const JOBS: usize = 2_000;
/// Their interval in seconds.
const INTERVAL: i64 = 10;
/// Occurrences of the live job that are late when everything is resumed. They follow one another: each claim plans the
/// next.
const LATE: usize = 3;
/// More runs than the test creates.
const RUNS_MAX: &str = "100000";

/// Checks that a live job gets its runs before most of the resumed jobs get theirs. `put` writes a job file that a
/// daemon watches, and `command` runs a command that must succeed, and returns its output.
pub(crate) fn assert_live_job_overtakes(put: impl Fn(&str, &str), command: impl Fn(&[&str]) -> String) {
    let json = |args: &[&str]| -> Vec<Value> {
        let text = command(&[args, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
    };
    let runs = |job: &str| json(&["runs", job, "-n", RUNS_MAX]);
    let now = || clock_gettime(ClockId::Realtime).tv_sec;
    command(&["pause", "all"]);
    let yaml = |schedule: &str| format!("program: {{noop: true}}\nschedule: {schedule}\noverlap: allow\n");
    (0..JOBS).for_each(|number| put(&format!("owed-{number}"), &yaml(&format!("{{every: {INTERVAL}s}}"))));
    eventually("all jobs are there", || json(&["list"]).len() == JOBS);
    let loaded = now();
    eventually("all of them are late", || now() > loaded + INTERVAL);
    put("live", &yaml("'* * * * * * *'"));
    eventually("the live job is there", || json(&["list"]).len() == JOBS + 1);
    let begun = now();
    let late = i64::try_from(LATE).expect("it is small");
    eventually("the live job is late, too", || now() > begun + late);
    let resumed = now();
    command(&["resume", "all"]);

    let is_late = |run: &Value| nominal(run).secs() <= resumed;
    eventually("the live job is on time again", || runs("live").iter().filter(|run| !is_late(run)).count() >= 3);
    eventually("all jobs have a run", || owed_jobs(&json(&["runs", "-n", RUNS_MAX])) == JOBS);
    let live = runs("live");
    assert!(live.iter().all(|run| run["state"] != "skipped"), "{live:#?}");
    let mut overdue: Vec<&Value> = live.iter().filter(|run| is_late(run)).collect();
    overdue.sort_by_key(|run| nominal(run));
    assert!(overdue.len() >= LATE, "{live:#?}");
    let claimed = created(overdue[LATE - 1]);
    let all = json(&["runs", "-n", RUNS_MAX]);
    let before: Vec<Value> = all.into_iter().filter(|run| created(run) < claimed).collect();
    let before = owed_jobs(&before);
    assert!(before < JOBS / 2, "the live job waited for {before} of {JOBS} jobs");
    command(&["holes"]);
}

/// The number of jobs other than the live one that have runs.
fn owed_jobs(runs: &[Value]) -> usize {
    runs.iter().filter_map(|run| run["job"].as_str()).filter(|job| *job != "live").collect::<BTreeSet<_>>().len()
}

fn nominal(run: &Value) -> Instant {
    parse(&run["nominal_time"]).expect("a nominal time")
}

/// When the occurrence was claimed: the time of the run's first state.
fn created(run: &Value) -> Instant {
    let times = run["times"].as_object().expect("times");
    times.values().filter_map(parse).min().expect("a time")
}

fn parse(time: &Value) -> Option<Instant> {
    time.as_str().map(|text| Instant::parse(text).expect("an instant"))
}
