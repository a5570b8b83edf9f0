//! `pause` and `resume`.

use super::place::Place;

const JOBS: &[(&str, &str)] =
    &[("hello", "program: [echo, hi]\nschedule: 0 3 1 1 *\n"), ("backup/nightly", "program: ['true']\n")];

#[test]
fn pause() {
    let place = Place::up("pause", JOBS);
    let text = place.transcript(&[
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
    let place = Place::up("resume", JOBS);
    place.done(&["pause", "hello"]);
    place.done(&["pause", "all"]);
    let text = place.transcript(&[
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
