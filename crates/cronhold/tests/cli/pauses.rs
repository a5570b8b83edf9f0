//! `pause` and `resume`.

use super::processes::eventually;
use super::sandbox::Sandbox;

const JOBS: &[(&str, &str)] =
    &[("hello", "program: [echo, hi]\nschedule: 0 3 1 1 *\n"), ("backup/nightly", "program: ['true']\n")];

#[test]
fn pause() {
    let sandbox = Sandbox::up("pause", JOBS);
    let text = sandbox.transcript(&[
        &["pause", "hello", "--why", "tea"],
        &["pause", "hello", "--why", "more tea", "-o", "json"],
        &["pause", "all", "-o", "yaml"],
        &["pause", "all", "--why", "the move"],
        &["list"],
        &["why", "hello"],
        &["run", "hello", "--wait"],
        &["pause", "helo"],
        &["pause", "nightly"],
        &["pause"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn timed_pause_ends_by_itself() {
    let sandbox = Sandbox::up("pause-for", &[("tick", "program: 'true'\nschedule: '@every 1s'\ncatch_up: none\n")]);
    let paused = sandbox.json(&["pause", "tick", "--for", "2h"]);
    assert!(paused["pause"]["until"].is_string(), "{paused}");
    assert!(sandbox.done(&["list"]).contains("paused until "));
    assert!(sandbox.done(&["show", "tick"]).contains("paused until "));
    let end = paused["pause"]["until"].as_str().expect("a time")[..16].replace('T', " ");
    let why = sandbox.done(&["why", "tick"]);
    assert!(why.contains(&format!("starts automatically until {end}")), "{why}");
    // The end is stored, so it counts after a restart too.
    sandbox.done(&["pause", "tick", "--for", "2s"]);
    sandbox.end(rustix::process::Signal::KILL);
    sandbox.start();
    eventually("the pause has ended", || sandbox.json(&["show", "tick"])["pause"].is_null());
    eventually("the schedule goes on", || sandbox.json(&["runs", "tick", "--state", "success"])[0].is_object());
}

#[test]
fn pattern_pauses_and_resumes_all_matching_jobs() {
    let job = "program: 'true'\n";
    let sandbox = Sandbox::up("pause-pattern", &[("etl/a", job), ("etl/b", job), ("other", job)]);
    let paused = |sandbox: &Sandbox| -> Vec<bool> {
        let jobs = sandbox.json(&["list"]);
        jobs.as_array().expect("a list").iter().map(|job| job["paused"] == true).collect()
    };
    sandbox.done(&["pause", "etl/a"]);
    let shown = sandbox.done(&["pause", "etl/*", "--for", "2h"]);
    assert!(shown.starts_with("paused 2 jobs until "), "{shown}");
    assert_eq!(paused(&sandbox), [true, true, false]);
    sandbox.done(&["resume", "etl/b"]);
    assert_eq!(sandbox.done(&["resume", "etl/*"]), "resumed 1 job; nothing to do for 1 other job\n");
    assert_eq!(paused(&sandbox), [false, false, false]);
    for (args, exit) in [
        (&["pause", "nothing/*"][..], 1),
        (&["pause", "etl/a", "--for", "0s"], 2),
        (&["pause", "etl/a", "--for", "soon"], 2),
        (&["pause", "etl/a", "--until", "2020-01-01"], 2),
        (&["pause", "etl/a", "--until", "2099-01-01", "--for", "1h"], 2),
    ] {
        assert_eq!(sandbox.run_command(args).status.code(), Some(exit), "{args:?}");
    }
    assert_eq!(paused(&sandbox), [false, false, false]);
}

#[test]
fn resume() {
    let sandbox = Sandbox::up("resume", JOBS);
    sandbox.done(&["pause", "hello"]);
    sandbox.done(&["pause", "all"]);
    let text = sandbox.transcript(&[
        &["resume", "all"],
        &["list"],
        &["resume", "hello", "-o", "json"],
        &["resume", "hello"],
        &["resume", "all", "-o", "json"],
        &["resume", "helo"],
        &["resume"],
    ]);
    insta::assert_snapshot!(text);
}
