//! `pause` and `resume`.

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
