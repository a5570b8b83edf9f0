//! The daemon itself: `reload`, `nodes`, `token`.

use rustix::process::Signal;

use super::place::Place;

const HELLO: &str = "program: [echo, hi]\n";

#[test]
fn reload() {
    let place = Place::up("reload", &[("hello", HELLO)]);
    let before = place.transcript(&[&["reload"], &["reload", "-o", "json"]]);
    place.put("jobs/wrong.yaml", "program: ['true']\nprogam: x\n");
    let after = place.transcript(&[&["reload"], &["reload", "-o", "yaml"], &["reload", "now"]]);
    insta::assert_snapshot!(format!("{before}\n{after}"));
}

#[test]
fn nodes() {
    let place = Place::up("nodes", &[]);
    let text = place.transcript(&[&["nodes"], &["nodes", "-o", "json"], &["nodes", "-o", "yaml"], &["nodes", "all"]]);
    insta::assert_snapshot!(text);
}

#[test]
fn token() {
    let place = Place::up("token", &[]);
    let shown = place.done(&["token", "show"]);
    let running = place.transcript(&[
        &["token", "show"],
        &["token", "show", "-o", "json"],
        &["token", "link"],
        &["token", "link", "-o", "json"],
        &["token", "renew"],
        &["token", "renew", "-o", "json"],
        &["token", "--url", "http://127.0.0.1:1", "show"],
        &["token", "shwo"],
        &["token"],
    ]);
    assert_ne!(place.done(&["token", "show"]), shown, "it was renewed");
    place.done(&["nodes"]);
    place.end(Signal::TERM);
    // It is in a file, for which no daemon is needed.
    let ended = place.transcript(&[&["token", "show"], &["token", "--data", "none", "show"], &["token", "renew"]]);
    insta::assert_snapshot!(format!("{running}\n{ended}"));
}
