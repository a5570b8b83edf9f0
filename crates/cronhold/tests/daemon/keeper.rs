//! Programs and their output survive the death of the daemon. If the keeper dies, its programs are killed.

mod failing;
#[cfg(debug_assertions)]
mod versions;

use std::fs;
use std::path::Path;

use cronhold_core::State;
use cronhold_core::record::ProgramExit;
use cronhold_core::run::Reason;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::daemon::{Daemon, Sandbox};
use super::log_lines::find_event;
use super::processes::eventually;

const PROGRAMS: usize = 60;
/// How many of the programs end while no daemon runs.
const EARLY: usize = 30;
const LINES: usize = 200;

/// A program that writes lines, waits for a file, writes more lines, creates its `done` file, and exits with its own
/// code.
fn program(sandbox: &Path, number: usize) -> String {
    let go = sandbox.join(if number < EARLY { "go-early" } else { "go-late" });
    let (go, done) = (go.display(), sandbox.join(format!("done-{number}")));
    let lines = |what: &str| format!("i=0; while [ $i -lt {LINES} ]; do echo {number} {what} $i; i=$((i+1)); done");
    let (before, after) = (lines("before"), lines("after"));
    format!("{before}; until [ -e {go} ]; do sleep 0.1; done; {after}; touch {}; exit {}", done.display(), number % 5)
}

fn expected(number: usize) -> String {
    let lines = |what: &'static str| (0..LINES).map(move |line| format!("{number} {what} {line}\n"));
    lines("before").chain(lines("after")).collect()
}

/// Asserts that a run ended because its keeper was lost.
fn assert_keeper_lost(line: &Value) {
    assert_eq!(line["reason"], Reason::KeeperLost.to_string(), "{line}");
}

#[test]
fn killed_daemon_adopts_its_programs() {
    let sandbox = Sandbox::new("take-up");
    let path = sandbox.path("").canonicalize().expect("there");
    for number in 0..PROGRAMS {
        let yaml = format!("program: '{}'\nshell: /bin/sh\nschedule: '@reboot'\n", program(&path, number));
        sandbox.put_job(&format!("many/{number}"), &yaml);
    }
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    for number in 0..PROGRAMS {
        daemon.wait_until_run(&format!("many/{number}#1"), "running");
    }
    let keeper = sandbox.keeper().expect("a keeper");
    daemon.kill();
    fs::write(sandbox.path("go-early"), "").expect("written");
    let is_done = |number: usize| sandbox.path(&format!("done-{number}")).exists();
    eventually("the early ones are done", || (0..EARLY).all(is_done));
    assert_eq!(sandbox.keeper(), Some(keeper), "the keeper outlives the daemon");
    // The next daemon is killed as well, and another one is started.
    let mut daemon = sandbox.up();
    daemon.wait_until_run("many/0#1", "success");
    daemon.kill();
    let mut daemon = sandbox.up();
    fs::write(sandbox.path("go-late"), "").expect("written");
    let stored = loop {
        daemon.wait_for_lines(1);
        let stored = sandbox.stored();
        if stored.runs.iter().filter(|run| run.number.0 == 1).all(|run| run.state.is_finished()) {
            break stored;
        }
    };
    for number in 0..PROGRAMS {
        let run = stored.run(&format!("many/{number}"), 1);
        let code = i32::try_from(number % 5).expect("small");
        assert_eq!(run.exit, Some(ProgramExit::Code(code)), "{number}: {:?}", run.log);
        assert_eq!(run.state, if code == 0 { State::Success } else { State::Failure });
        let launches = run.log.iter().filter(|transition| transition.state == State::Running).count();
        assert_eq!(launches, 1, "it was started once: {:?}", run.log);
        assert_eq!(String::from_utf8(sandbox.output(run)).expect("text"), expected(number), "{number}");
    }
    assert_eq!(sandbox.keeper(), Some(keeper), "it is the same one");
    // The keeper deletes output that is stored.
    eventually("no output is left", || sandbox.kept_outputs() == 0);
    assert_eq!(daemon.stop().0.code(), Some(0));
}

#[test]
fn stopped_daemon_leaves_programs_running() {
    let sandbox = Sandbox::new("leave");
    let go = sandbox.path("go");
    let yaml = format!("program: 'until [ -e {} ]; do sleep 0.02; done'\nschedule: '@reboot'\n", go.display());
    sandbox.put_job("wait", &yaml);
    let mut daemon = sandbox.up();
    daemon.wait_until_run("wait#1", "running");
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0));
    let is_left = |line| find_event(line, "programs_left", &[("count", "1")]).is_some();
    assert!(log.lines().any(is_left), "{log}");
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    daemon.wait_for_event("programs_found", &[("running", "1"), ("ended", "0")]);
    fs::write(go, "").expect("written");
    daemon.wait_until_run("wait#1", "success");
    daemon.kill();
}

#[test]
fn killed_keeper_ends_its_programs() {
    let sandbox = Sandbox::new("lost");
    let pid = sandbox.path("pid");
    let escaped = sandbox.path("escaped");
    let program = format!(
        "echo $$ > {}; setsid sh -c \"echo \\$\\$ > {}; sleep 55\" & sleep 55",
        pid.display(),
        escaped.display()
    );
    sandbox.put_job("sleep", &format!("program: '{program}'\nschedule: '@reboot'\n"));
    sandbox.put_job("tick", "program: 'true'\nschedule: {every: 1s}\n");
    let mut daemon = sandbox.up();
    daemon.wait_until_run("sleep#1", "running");
    let is_written = |file: &Path| fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n'));
    eventually("both are there", || is_written(&pid) && is_written(&escaped));
    let keeper = sandbox.keeper().expect("a keeper");
    kill_process(keeper, Signal::KILL).expect("it runs");
    assert_keeper_lost(&daemon.wait_until_run("sleep#1", "error"));
    sandbox.wait_for_death(&pid);
    sandbox.wait_for_death(&escaped);
    assert_ne!(sandbox.keeper(), Some(keeper));
    // The new keeper works.
    daemon.wait_for_event("run_state", &[("state", "success")]);
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// Daemon and keeper are killed. The next daemon starts a new keeper, which kills the remaining programs.
#[test]
fn next_keeper_ends_programs_after_daemon_and_keeper_die() {
    let sandbox = Sandbox::new("both");
    let pid = sandbox.path("pid");
    let program = format!("echo $$ > {}; sleep 55", pid.display());
    sandbox.put_job("sleep", &format!("program: '{program}'\nlock: true\noverlap: queue\nschedule: '@reboot'\n"));
    let mut daemon = sandbox.up();
    daemon.wait_until_run("sleep#1", "running");
    eventually("it is there", || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    let first_pid = sandbox.path("first-pid");
    fs::copy(&pid, &first_pid).expect("copied");
    kill_process(sandbox.keeper().expect("a keeper"), Signal::KILL).expect("it runs");
    daemon.kill();
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    assert_keeper_lost(&daemon.wait_until_run("sleep#1", "error"));
    sandbox.wait_for_death(&first_pid);
    // The lock is free again, so the run that the second start has queued starts.
    daemon.wait_until_run("sleep#2", "running");
    daemon.kill();
}

/// Output that a program writes while no daemon runs is stored with its run, even if the keeper dies before the next
/// daemon starts. It does not matter which of the two dies first.
#[test]
fn output_written_without_a_daemon_survives_a_killed_keeper() {
    for is_keeper_first in [false, true] {
        let sandbox = Sandbox::new(&format!("unseen-{is_keeper_first}"));
        let (go, done) = (sandbox.path("go"), sandbox.path("done"));
        let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
        let program = format!("echo seen; {wait}; seq 1 100000; printf unseen; touch {}; sleep 55", done.display());
        sandbox.put_job("talk", &format!("program: '{program}'\nschedule: '@reboot'\n"));
        let mut daemon = sandbox.up();
        daemon.wait_until_run("talk#1", "running");
        let run = sandbox.stored().run("talk", 1).clone();
        eventually("the first line is stored", || sandbox.output(&run) == b"seen\n");
        let keeper = sandbox.keeper().expect("a keeper");
        if is_keeper_first {
            // A suspended daemon does not start another keeper.
            daemon.send(Signal::STOP);
            kill_process(keeper, Signal::KILL).expect("it runs");
        }
        daemon.kill();
        fs::write(&go, "").expect("written");
        eventually("it has written", || done.exists());
        if !is_keeper_first {
            kill_process(keeper, Signal::KILL).expect("it runs");
        }
        let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
        assert_keeper_lost(&daemon.wait_until_run("talk#1", "error"));
        let numbers: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
        assert!(sandbox.output(&run) == format!("seen\n{numbers}unseen").into_bytes());
        daemon.kill();
    }
}

const JOBS: usize = 20;
const ROUNDS: usize = 12;

/// The daemon is killed repeatedly while programs start and end. Each program starts at most once, and the exit of each
/// started program is recorded.
#[test]
fn daemon_killed_during_launches_starts_each_program_once() {
    let sandbox = Sandbox::new("starting");
    let starts = sandbox.path("starts");
    let program = format!("echo $CRONHOLD_RUN_ID >> {}; echo out $CRONHOLD_RUN_ID; exit 4", starts.display());
    for number in 0..JOBS {
        let rest = "shell: /bin/sh\nsuccess_codes: [4]\noverlap: allow\ncatch_up: {policy: all, within: 1h}";
        let yaml = format!("program: '{program}'\n{rest}\nschedule: {{every: 1s}}\n");
        sandbox.put_job(&format!("busy/{number}"), &yaml);
    }
    for round in 0..ROUNDS {
        let mut daemon = sandbox.up();
        // The kills hit different points of each second.
        daemon.wait_for_lines(1 + round * 17 % (2 * JOBS));
        daemon.kill();
    }
    let mut daemon = sandbox.up();
    let reached = sandbox.stored().reached();
    let stored = daemon.wait_until_complete(&sandbox, &reached, JOBS);
    daemon.kill();
    let text = fs::read_to_string(&starts).expect("there");
    let mut started: Vec<&str> = text.lines().collect();
    let count = started.len();
    started.sort_unstable();
    started.dedup();
    assert_eq!(started.len(), count, "a program was started twice");
    let over = stored.runs.iter().filter(|run| run.state.is_finished());
    for run in over.filter(|run| run.state != State::Skipped) {
        let id = run.id.to_string();
        let has_started = started.binary_search(&id.as_str()).is_ok();
        assert_eq!(has_started, run.state == State::Success, "{id}: {:?} {:?}", run.reason, run.log);
        if has_started {
            assert_eq!(String::from_utf8(sandbox.output(run)).expect("text"), format!("out {id}\n"));
        }
    }
}
