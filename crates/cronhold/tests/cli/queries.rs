//! Verbs that change nothing: `next` of a job, `explain`, `lint`, `check`, `why`, `holes`.

use super::processes::eventually;
use super::sandbox::{Sandbox, transcript_of};
use super::unreachable::always;

const JOBS: &[(&str, &str)] = &[
    ("backup/nightly", "program: ['true']\nschedule: {daily: '02:30', timezone: Europe/Berlin}\n"),
    ("hand", "program: ['true']\n"),
    ("bad", "program: exit 3\nschedule: 0 3 1 1 *\n"),
];

#[test]
fn next() {
    let sandbox = Sandbox::up("next", JOBS);
    let text = sandbox.transcript(&[
        &["next", "backup/nightly", "--after", "2020-03-27", "-n", "3"],
        &["next", "backup/nightly", "--after", "2020-03-27", "-n", "2", "-o", "json"],
        &["next", "hand"],
        &["next", "hand", "-o", "json"],
        &["next", "nightly"],
        &["next", "backup/nihgtly"],
        &["next", "backup/nightly", "--after", "soon"],
        &["next", "backup/nightly", "-n", "0"],
        &["next"],
    ]);
    insta::assert_snapshot!(text);
}

/// The JSON and YAML output of verbs that need no daemon. The tests in `verbs` cover their text output.
#[test]
fn explain_lint_and_check_as_json_and_yaml() {
    let sandbox = Sandbox::empty("programs");
    sandbox.put("jobs/wrong.yaml", "program: ['true']\nprogam: x\n");
    sandbox.put("good/hello.yaml", "program: ['true']\nschedule: 0 0 31 * *\n");
    let text = sandbox.transcript(&[
        &["explain", "30 2 * * *", "--timezone", "Europe/Berlin", "--after", "2020-03-27", "-o", "json"],
        &["explain", "0 0 1 * *", "--after", "2020-03-27", "-o", "yaml"],
        &["explain", "0 25 * * *", "-o", "json"],
        &["lint", "0 0 31 * *", "--after", "2020-01-01", "-o", "json"],
        &["lint", "good", "--after", "2020-01-01", "-o", "yaml"],
        &["check", "jobs", "-o", "json"],
        &["check", "jobs", "-o", "yaml"],
        &["check", "good", "-o", "json"],
        &["check", "nowhere"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn why() {
    let sandbox = Sandbox::up("why", JOBS);
    sandbox.run("bad");
    let text = sandbox.transcript(&[
        &["why", "backup/nightly"],
        &["why", "hand"],
        &["why", "bad"],
        &["why", "bad", "-o", "json"],
        &["why", "backup/nightly", "2020-01-01T01:30:00Z"],
        &["why", "backup/nightly", "2020-01-01", "--timezone", "Europe/Berlin"],
        &["why", "nightly"],
        &["why", "bad", "soon"],
        &["why"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn holes() {
    let sandbox = Sandbox::up("holes", JOBS);
    sandbox.done(&["add", "tick", "* * * * * * *", "true"]);
    eventually("it has run", || !sandbox.json(&["runs", "tick"]).as_array().expect("an array").is_empty());
    // From here on no occurrence is due, so that no run is in progress.
    sandbox.done(&["pause", "tick"]);
    let text = sandbox.transcript(&[
        &["holes"],
        &["holes", "tick", "--since", "1h"],
        &["holes", "hand", "--since", "2020-01-01", "--until", "2020-02-01", "-o", "json"],
        &["holes", "tikc"],
        &["holes", "--since", "soon"],
        &["holes", "--since", "2020-02-01", "--until", "2020-01-01"],
        &["holes", "a", "b"],
    ]);
    insta::assert_snapshot!(text);
}

/// A daemon never has a hole, so a fake server reports one.
#[test]
fn found_hole_is_a_failure() {
    let body = r#"{"from":"2020-01-01T00:00:00Z","to":"2020-02-01T00:00:00Z","jobs":1,"found":1,
        "lines":[{"tone":"answer","text":"`hello` has no record of 2020-01-01 03:00 UTC."}]}"#;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
    let url = always(format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).leak());
    let sandbox = Sandbox::empty("a-hole");
    let args = ["holes", "hello", "--since", "2020-01-01"];
    let output = sandbox.command(&args).env("CRONHOLD_URL", url).output().expect("the binary starts");
    insta::assert_snapshot!(transcript_of(&args, &output));
}

/// A run is explained by its steps, and an unfinished one by what it waits for, with the args that count.
#[test]
fn why_of_a_run() {
    let jobs = [
        ("dump", "params: {date: {}}\nprogram: ['true']\n"),
        ("load", "params: {date: {}}\nprogram: ['true']\nconditions: [{after: {job: dump}}]\n"),
    ];
    let sandbox = Sandbox::up("why-run", &jobs);
    sandbox.run_command(&["run", "dump", "date=2020-01-01", "--wait"]);
    let shown = sandbox.shown(&["run", "load", "date=2020-01-02"]);
    assert_eq!(
        shown,
        "$ cronhold run load date=2020-01-02\nload#1 waiting for a run of `dump` with date=2020-01-02 in success\n\
         err| `cronhold why load#1` shows what it waits for\nexit 0\n"
    );
    let text = sandbox.done(&["why", "load#1"]);
    let needs = "it waits for a run of `dump` with date=2020-01-02 in success";
    assert!(text.starts_with("load#1 waiting for a run of `dump`") && text.contains(needs), "{text}");
    assert!(sandbox.done(&["why", "dump#1"]).starts_with("dump#1 success, took "));
    assert_eq!(sandbox.json(&["why", "load#1"])["job"], "load");
    let refused = sandbox.run_command(&["why", "load#1", "2h"]);
    assert_eq!(refused.status.code(), Some(2));
}
