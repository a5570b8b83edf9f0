//! Operations on a run: `start`, `skip`, `stop`, `kill`, `signal`, `mark`, `rerun`.

use super::processes::eventually;
use super::sandbox::Sandbox;

/// A program that ignores signals, and prints the ones that it receives.
const STUBBORN: &str = "program: |\n  trap 'echo term' TERM\n  trap 'echo usr1' USR1\n  echo up\n  \
                        while :; do sleep 0.02; done\nstop: {grace: 1h}\n";
const JOBS: &[(&str, &str)] = &[
    ("stubborn", STUBBORN),
    ("good", "program: [echo, hi]\n"),
    ("bad", "program: exit 3\n"),
    ("waits", "program: [echo, at last]\nconditions: [{after: {job: good}}]\n"),
];

/// Starts a run of the stubborn job, and waits until its signal handlers are installed.
fn stubborn(sandbox: &Sandbox, number: u32) {
    sandbox.done(&["run", "stubborn"]);
    let run = format!("stubborn#{number}");
    sandbox.wait_for(&run, "running");
    eventually("its handlers are installed", || sandbox.run_command(&["logs", &run]).stdout == b"up\n");
}

#[test]
fn start() {
    let sandbox = Sandbox::up("start", JOBS);
    for day in ["2099-01-01", "2099-01-02", "2099-01-03"] {
        sandbox.done(&["run", "good", "--at", day]);
    }
    sandbox.done(&["run", "bad", "--at", "2099-01-01"]);
    let text = sandbox.transcript(&[
        &["start", "good#1", "--wait"],
        &["start", "good", "--wait", "-o", "json"],
        &["start", "bad#1", "--wait"],
        &["start", "good#1"],
        &["start", "good", "--wait"],
        &["start", "bad"],
        &["start", "waits"],
        &["start", "god"],
        &["start", "good#9"],
        &["start"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn skip() {
    let sandbox = Sandbox::up("skip", JOBS);
    for day in ["2099-01-01", "2099-01-02", "2099-01-03"] {
        sandbox.done(&["run", "good", "--at", day]);
    }
    let text = sandbox.transcript(&[
        &["skip", "good#1"],
        &["skip", "good#2", "--why", "not needed", "-o", "json"],
        &["skip", "good#1"],
        &["skip", "good", "--why", ""],
        &["skip", "good"],
        &["skip", "god"],
        &["skip", "good#9"],
        &["skip"],
        &["runs", "good"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn stop() {
    let sandbox = Sandbox::up("stop", JOBS);
    stubborn(&sandbox, 1);
    sandbox.run("good");
    sandbox.done(&["run", "bad", "--at", "2099-01-01"]);
    let text = sandbox.transcript(&[
        &["stop", "stubborn"],
        &["stop", "stubborn"],
        &["stop", "good"],
        &["stop", "bad"],
        &["stop", "stuborn"],
        &["stop", "stubborn#9"],
        &["stop"],
        &["kill", "stubborn", "--wait"],
        &["stop", "stubborn#1", "-o", "json"],
    ]);
    eventually("it received the signal", || sandbox.done(&["logs", "stubborn"]).contains("term"));
    insta::assert_snapshot!(text);
    sandbox.done(&["add", "meek", "triggered", "sleep", "600"]);
    sandbox.done(&["run", "meek"]);
    sandbox.wait_for("meek", "running");
    assert_eq!(sandbox.json(&["stop", "meek", "--wait"])["signal"], "SIGTERM");
}

#[test]
fn kill() {
    let sandbox = Sandbox::up("kill", JOBS);
    stubborn(&sandbox, 1);
    stubborn_again(&sandbox);
    sandbox.run("good");
    let text = sandbox.transcript(&[
        &["kill", "stubborn#1", "--wait"],
        &["kill", "good"],
        &["kill", "stuborn"],
        &["kill", "stubborn#9"],
        &["kill"],
    ]);
    insta::assert_snapshot!(text);
}

/// A second run, which is skipped because the first one is still running.
fn stubborn_again(sandbox: &Sandbox) {
    assert_eq!(sandbox.run_command(&["run", "stubborn"]).status.code(), Some(1), "a skipped run is a failure");
    sandbox.wait_for("stubborn#2", "skipped");
}

#[test]
fn signal() {
    let sandbox = Sandbox::up("signal", JOBS);
    stubborn(&sandbox, 1);
    stubborn_again(&sandbox);
    let text = sandbox.transcript(&[
        &["signal", "stubborn#1", "USR1"],
        &["signal", "stubborn#1", "10"],
        &["signal", "stubborn", "USR1"],
        &["signal", "stubborn#1", "USR9"],
        &["signal", "stubborn#1", "SIGUSER1"],
        &["signal", "stuborn", "USR1"],
        &["signal", "stubborn#1"],
    ]);
    eventually("it received a signal", || sandbox.done(&["logs", "stubborn#1"]).contains("usr1"));
    insta::assert_snapshot!(text);
}

#[test]
fn mark() {
    let sandbox = Sandbox::up("mark", JOBS);
    sandbox.run("bad");
    sandbox.done(&["run", "good", "--at", "2099-01-01"]);
    let text = sandbox.transcript(&[
        &["mark", "bad#1", "success", "--why", "restored by hand"],
        &["mark", "bad", "failure", "-o", "json"],
        &["mark", "bad", "failure"],
        &["runs", "bad#1"],
        &["mark", "bad", "running"],
        &["mark", "bad", "sucess"],
        &["mark", "good", "success"],
        &["mark", "bda", "success"],
        &["mark", "bad#9", "success"],
        &["mark", "bad"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn rerun() {
    let sandbox = Sandbox::up("rerun", JOBS);
    sandbox.run("bad");
    sandbox.run("good");
    sandbox.done(&["run", "waits", "--at", "2099-01-01"]);
    let text = sandbox.transcript(&[
        &["rerun", "good", "--wait"],
        &["rerun", "bad#1", "--wait"],
        &["rerun", "good#1", "--wait", "-o", "json"],
        &["runs", "good"],
        &["rerun", "waits"],
        &["rerun", "god"],
        &["rerun", "good#9"],
        &["rerun"],
    ]);
    insta::assert_snapshot!(text);
    let first = sandbox.json(&["runs", "good#1"])[0]["id"].clone();
    assert_eq!(sandbox.json(&["runs", "good"])[0]["rerun_of"], first);
}

/// A rerun uses the definition of the original run. With `--current`, it uses the current definition of the job.
#[test]
fn rerun_uses_the_old_or_the_current_definition() {
    let sandbox = Sandbox::up("current", &[]);
    sandbox.done(&["add", "word", "triggered", "echo", "then"]);
    sandbox.run("word");
    sandbox.done(&["upd", "word", "--", "echo", "now"]);
    assert_eq!(sandbox.done(&["rerun", "word#1", "--wait"]), "then\n");
    assert_eq!(sandbox.done(&["rerun", "word#1", "--current", "--wait"]), "now\n");
}
