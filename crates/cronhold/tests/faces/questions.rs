//! Verbs that change nothing: `next` of a job, `explain`, `lint`, `check`, `why`, `holes`.

use super::place::{Place, transcript_of};
use super::processes::eventually;
use super::unreachable::always;

const JOBS: &[(&str, &str)] = &[
    ("backup/nightly", "program: ['true']\nschedule: {daily: '02:30', timezone: Europe/Berlin}\n"),
    ("hand", "program: ['true']\n"),
    ("bad", "program: exit 3\nschedule: 0 3 1 1 *\n"),
];

#[test]
fn next() {
    let place = Place::up("next", JOBS);
    let text = place.transcript(&[
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
    let place = Place::empty("programs");
    place.put("jobs/wrong.yaml", "program: ['true']\nprogam: x\n");
    place.put("good/hello.yaml", "program: ['true']\nschedule: 0 0 31 * *\n");
    let text = place.transcript(&[
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
    let place = Place::up("why", JOBS);
    place.run("bad");
    let text = place.transcript(&[
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
    let place = Place::up("holes", JOBS);
    place.done(&["add", "tick", "* * * * * * *", "true"]);
    eventually("it has run", || !place.json(&["runs", "tick"]).as_array().expect("an array").is_empty());
    // From here on no occurrence is due, so that no run is in progress.
    place.done(&["pause", "tick"]);
    let text = place.transcript(&[
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
    let place = Place::empty("a-hole");
    let args = ["holes", "hello", "--since", "2020-01-01"];
    let output = place.command(&args).env("CRONHOLD_URL", url).output().expect("the binary starts");
    insta::assert_snapshot!(transcript_of(&args, &output));
}
