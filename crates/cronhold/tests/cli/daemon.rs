//! Verbs about the daemon itself: `reload`, `nodes`, `drain`, `token`.

use rustix::process::Signal;

use super::sandbox::Sandbox;

const HELLO: &str = "program: [echo, hi]\n";

#[test]
fn reload() {
    let sandbox = Sandbox::up("reload", &[("hello", HELLO)]);
    let before = sandbox.transcript(&[&["reload"], &["reload", "-o", "json"]]);
    sandbox.put("jobs/wrong.yaml", "program: ['true']\nprogam: x\n");
    let after = sandbox.transcript(&[&["reload"], &["reload", "-o", "yaml"], &["reload", "now"]]);
    insta::assert_snapshot!(format!("{before}\n{after}"));
}

#[test]
fn nodes() {
    let sandbox = Sandbox::up("nodes", &[]);
    let text = sandbox.transcript(&[&["nodes"], &["nodes", "-o", "json"], &["nodes", "-o", "yaml"], &["nodes", "all"]]);
    insta::assert_snapshot!(text);
}

#[test]
fn drain() {
    let sandbox = Sandbox::up("drain", &[("hello", HELLO)]);
    let on = sandbox.transcript(&[
        &["drain"],
        &["drain", "test"],
        &["drain", "test", "-o", "json"],
        &["nodes"],
        &["run", "hello"],
        &["drain", "--undo", "test"],
    ]);
    sandbox.wait_for("hello#1", "success");
    let off = sandbox.transcript(&[
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
    let sandbox = Sandbox::empty("labels");
    sandbox.put("jobs/train.yaml", "program: [echo, hi]\nnodes: [gpu]\n");
    sandbox.start_with(&["--label", "rack-7", "--label", "gpu"]);
    let with = sandbox.transcript(&[&["nodes"], &["run", "train", "--wait"]]);
    sandbox.end(Signal::TERM);
    sandbox.start();
    let without = sandbox.transcript(&[&["nodes"], &["run", "train"], &["why", "train"]]);
    insta::assert_snapshot!(format!("{with}\n{without}"));
}

#[test]
fn token() {
    let sandbox = Sandbox::up("token", &[]);
    let shown = sandbox.done(&["token", "show"]);
    let running = sandbox.transcript(&[
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
    assert_ne!(sandbox.done(&["token", "show"]), shown, "it was renewed");
    sandbox.done(&["nodes"]);
    sandbox.end(Signal::TERM);
    // `token show` reads a file and needs no daemon.
    let ended = sandbox.transcript(&[&["token", "show"], &["token", "--data", "none", "show"], &["token", "renew"]]);
    insta::assert_snapshot!(format!("{running}\n{ended}"));
}
