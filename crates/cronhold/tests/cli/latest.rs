//! Which run a job stands for, and `--wait` with retries.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::processes::eventually;
use super::sandbox::{RunningCommand, Sandbox, transcript_of};

/// Succeeds at the third attempt.
const FLAKY: &str = "program: 'echo attempt $CRONHOLD_ATTEMPT; [ $CRONHOLD_ATTEMPT -ge 3 ]'\n\
                     retry: {attempts: 4, backoff: 0s}\n";
const HOPELESS: &str = "program: 'echo attempt $CRONHOLD_ATTEMPT; exit 3'\nretry: {attempts: 2, backoff: 0s}\n";
/// Runs until it is stopped.
const LONG: &str = "program: 'echo up; exec sleep 600'\n";

fn numbers(runs: &Value) -> Vec<u64> {
    runs.as_array().expect("an array").iter().filter_map(|run| run["number"].as_u64()).collect()
}

#[test]
fn wait_ends_with_the_last_attempt() {
    let sandbox = Sandbox::up("wait-retries", &[("flaky", FLAKY), ("hopeless", HOPELESS)]);
    let text = sandbox.transcript(&[&["run", "flaky", "--wait"], &["run", "hopeless", "--wait"]]);
    assert_eq!(
        text,
        "$ cronhold run flaky --wait\nattempt 1\nattempt 2\nattempt 3\n\
         err| flaky#1 failure: exit code 1, took SPAN; flaky#2 retries it (attempt 2)\n\
         err| flaky#2 failure: exit code 1, attempt 2, took SPAN; flaky#3 retries it (attempt 3)\n\
         err| flaky#3 success, attempt 3, took SPAN\nexit 0\n\n\
         $ cronhold run hopeless --wait\nattempt 1\nattempt 2\n\
         err| hopeless#1 failure: exit code 3, took SPAN; hopeless#2 retries it (attempt 2)\n\
         err| hopeless#2 failure: exit code 3, attempt 2, took SPAN\nexit 1\n"
    );
    let rerun = sandbox.run_command(&["rerun", "flaky", "--wait", "-o", "json"]);
    let run: Value = serde_json::from_slice(&rerun.stdout).expect("one document");
    assert_eq!((&run["state"], &run["attempt"], rerun.status.code()), (&json!("success"), &json!(3), Some(0)));
    sandbox.done(&["run", "flaky", "--at", "2099-01-01"]);
    let started = sandbox.run_command(&["start", "flaky", "--wait"]);
    assert_eq!((&started.stdout[..], started.status.code()), (&b"attempt 1\nattempt 2\nattempt 3\n"[..], Some(0)));
}

/// The line about a retry says when it is due, and the wait survives a restart of the daemon before and during it.
#[test]
fn wait_for_a_retry_survives_a_restart() {
    let sandbox = Sandbox::empty("wait-restart");
    let go = sandbox.path("go").display().to_string();
    let script = format!(
        "echo attempt $CRONHOLD_ATTEMPT; [ $CRONHOLD_ATTEMPT -ge 2 ] || exit 1; \
                          until [ -e '{go}' ]; do sleep 0.02; done; echo done"
    );
    sandbox.put("jobs/slow.yaml", &format!("program: \"{script}\"\nretry: {{attempts: 2, backoff: 5m}}\n"));
    sandbox.start();
    let mut waiting = RunningCommand::start(sandbox.command(&["run", "slow", "--wait"]));
    assert_eq!(waiting.line(), "attempt 1\n");
    sandbox.wait_for("slow#2", "scheduled");
    sandbox.end(Signal::TERM);
    sandbox.start();
    sandbox.done(&["start", "slow"]);
    assert_eq!(waiting.line(), "attempt 2\n");
    sandbox.end(Signal::KILL);
    sandbox.start();
    sandbox.put("go", "");
    let output = waiting.end();
    let lines = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!((&output.stdout[..], output.status.code()), (&b"done\n"[..], Some(0)), "{lines}");
    assert!(lines.contains("; slow#2 retries it (attempt 2) in "), "{lines}");
}

/// The attempts of an occurrence are shown in their order.
#[test]
fn retried_job_shows_its_last_attempt() {
    let sandbox = Sandbox::up("retried", &[("flaky", FLAKY)]);
    for round in 0..3 {
        sandbox.run("flaky");
        let last = 3 * round + 3;
        assert_eq!(sandbox.done(&["logs", "flaky"]), "attempt 3\n");
        assert_eq!(numbers(&sandbox.json(&["runs", "flaky", "--limit", "3"])), [last, last - 1, last - 2]);
        let listed = sandbox.json(&["list", "flaky"]);
        assert_eq!((&listed[0]["last"]["state"], &listed[0]["last"]["number"]), (&json!("success"), &json!(last)));
    }
    assert_eq!(sandbox.json(&["mark", "flaky", "failure"])["number"], 9);
}

/// Skipped occurrences and runs of the future do not hide the run that is running.
#[test]
fn job_means_its_running_run() {
    let sandbox = Sandbox::up("running", &[("long", LONG)]);
    sandbox.done(&["run", "long"]);
    eventually("it has written", || sandbox.run_command(&["logs", "long#1"]).stdout == b"up\n");
    assert_eq!(sandbox.run_command(&["run", "long"]).status.code(), Some(1), "skipped");
    sandbox.done(&["run", "long", "--at", "2099-01-01"]);
    assert_eq!(sandbox.done(&["logs", "long"]), "up\n");
    assert_eq!(sandbox.json(&["list", "long"])[0]["last"]["number"], 1);
    assert_eq!(sandbox.json(&["signal", "long", "CONT"])["number"], 1);
    let text = sandbox.transcript(&[&["mark", "long", "success"], &["stop", "long", "--wait"], &["stop", "long"]]);
    assert_eq!(
        text,
        "$ cronhold mark long success\nerr| error: long#1: the run is not finished yet (running)\n\
         err|   hint: wait until it ends, or `stop` it\nexit 1\n\n\
         $ cronhold stop long --wait\nlong#1 failure: stopped (SIGTERM), took SPAN\nexit 0\n\n\
         $ cronhold stop long\nerr| error: long#1: the run is finished (failure)\n\
         err|   hint: `rerun` creates a new run like it; `mark` changes its finished state\nexit 1\n"
    );
    assert_eq!(sandbox.done(&["logs", "long"]), "up\n", "the last one that started");
}

/// Output is shown of the run that started last; a signal needs the name of a run.
#[test]
fn several_running_runs() {
    let sandbox = Sandbox::up("several", &[("long", &format!("{LONG}overlap: allow\n"))]);
    for number in 1..=2 {
        sandbox.done(&["run", "long"]);
        eventually("it has written", || sandbox.run_command(&["logs", &format!("long#{number}")]).stdout == b"up\n");
    }
    let args = ["logs", "long"];
    assert_eq!(
        transcript_of(&args, &sandbox.run_command(&args)),
        "$ cronhold logs long\nup\nerr| showing long#2, which started last; also running: long#1\nexit 0\n"
    );
    for verb in [&["stop", "long"][..], &["kill", "long"], &["signal", "long", "TERM"]] {
        let output = sandbox.run_command(verb);
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(text.contains("`long` has 2 running runs: long#2, long#1"), "{text}");
        assert!(text.contains("hint: name one of them, such as `long#2`"), "{text}");
        assert_eq!(output.status.code(), Some(1));
    }
    sandbox.done(&["kill", "long#1", "--wait"]);
    assert_eq!(sandbox.json(&["kill", "long", "--wait"])["number"], 2);
}

/// A backfill that ran just now is among what ran in the last hour.
#[test]
fn since_finds_backfilled_runs() {
    let jobs = [("yearly", "program: exit 3\nschedule: 0 0 1 1 *\n"), ("other", "program: ['true']\n")];
    let sandbox = Sandbox::up("since", &jobs);
    sandbox.run_command(&["backfill", "yearly", "--from", "2020-01-01", "--to", "2022-06-01"]);
    sandbox.run("other");
    for args in [&["runs", "--since", "1h", "--state", "failure"][..], &["runs", "yearly", "--since", "1h"]] {
        assert_eq!(numbers(&sandbox.json(args)), [3, 2, 1], "{args:?}");
    }
    assert_eq!(numbers(&sandbox.json(&["runs", "--since", "1h"])), [1, 3, 2, 1]);
    assert_eq!(sandbox.json(&["list", "yearly"])[0]["last"]["number"], 3);
    // Nothing has run since a time that is still to come.
    assert_eq!(numbers(&sandbox.json(&["runs", "--since", "2098-01-01"])), [0_u64; 0]);
}

/// The outcome of an occurrence is that of its last attempt, and the next occurrence waits for it.
#[test]
fn backfill_waits_for_retries() {
    let sandbox = Sandbox::up("backfill-retries", &[("flaky", &format!("{FLAKY}schedule: 0 0 1 1 *\n"))]);
    let outcomes = sandbox.json(&["backfill", "flaky", "--from", "2020-01-01", "--to", "2021-06-01"]);
    let outcomes = outcomes.as_array().expect("an array");
    assert_eq!(outcomes.len(), 2);
    assert!(outcomes.iter().all(|outcome| outcome["state"] == "success"), "{outcomes:?}");
    let runs = sandbox.json(&["runs", "flaky"]);
    assert_eq!(numbers(&runs), [6, 5, 4, 3, 2, 1], "{runs}");
}
