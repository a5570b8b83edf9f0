//! Verbs about the daemon itself: `reload`, `nodes`, `drain`, `token`.

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
fn drain() {
    let place = Place::up("drain", &[("hello", HELLO)]);
    let on = place.transcript(&[
        &["drain"],
        &["drain", "test"],
        &["drain", "test", "-o", "json"],
        &["nodes"],
        &["run", "hello"],
        &["drain", "--undo", "test"],
    ]);
    place.wait_for("hello#1", "success");
    let off = place.transcript(&[
        &["drain", "--undo"],
        &["drain", "--undo", "-o", "yaml"],
        &["run", "hello", "--wait"],
        &["drain", "tset"],
        &["drain", "elsewhere", "--undo"],
        &["drain", "a", "b"],
    ]);
    insta::assert_snapshot!(format!("{on}\n{off}"));
}

/// A job that requires labels runs on a node that has them. `why` reports missing labels.
#[test]
fn labels() {
    let place = Place::empty("labels");
    place.put("jobs/train.yaml", "program: [echo, hi]\nnodes: [gpu]\n");
    place.start_with(&["--label", "rack-7", "--label", "gpu"]);
    let with = place.transcript(&[&["nodes"], &["run", "train", "--wait"]]);
    place.end(Signal::TERM);
    place.start();
    let without = place.transcript(&[&["nodes"], &["run", "train"], &["why", "train"]]);
    insta::assert_snapshot!(format!("{with}\n{without}"));
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
    // `token show` reads a file and needs no daemon.
    let ended = place.transcript(&[&["token", "show"], &["token", "--data", "none", "show"], &["token", "renew"]]);
    insta::assert_snapshot!(format!("{running}\n{ended}"));
}
