//! Programs outlive the daemon, and nothing of theirs is lost; a keeper that is lost takes its programs along.

#[cfg(debug_assertions)]
mod versions;

use std::fs;
use std::path::Path;

use cronhold_core::State;
use cronhold_core::record::ProgramExit;
use cronhold_core::run::Reason;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::daemon::{Daemon, Place};
use super::log_lines::find_event;
use super::processes::eventually;

const PROGRAMS: usize = 60;
/// Of these, so many end while no daemon is there.
const EARLY: usize = 30;
const LINES: usize = 200;

/// Writes lines before and after there is a file, then says that it is done, and ends with a code of its own.
fn program(place: &Path, number: usize) -> String {
    let go = place.join(if number < EARLY { "go-early" } else { "go-late" });
    let (go, done) = (go.display(), place.join(format!("done-{number}")));
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
fn a_killed_daemon_finds_its_programs() {
    let place = Place::new("take-up");
    let path = place.path("").canonicalize().expect("there");
    for number in 0..PROGRAMS {
        let yaml = format!("program: '{}'\nshell: /bin/sh\nschedule: '@reboot'\n", program(&path, number));
        place.put_job(&format!("many/{number}"), &yaml);
    }
    let mut daemon = Daemon::start(&mut place.command(&["--jobs", "jobs"]));
    for number in 0..PROGRAMS {
        daemon.wait_until_run(&format!("many/{number}#1"), "running");
    }
    let keeper = place.keeper().expect("a keeper");
    daemon.kill();
    fs::write(place.path("go-early"), "").expect("written");
    let is_done = |number: usize| place.path(&format!("done-{number}")).exists();
    eventually("the early ones are done", || (0..EARLY).all(is_done));
    assert_eq!(place.keeper(), Some(keeper), "the keeper outlives the daemon");
    // One more life that is cut short, and another.
    let mut daemon = place.up();
    daemon.wait_until_run("many/0#1", "success");
    daemon.kill();
    let mut daemon = place.up();
    fs::write(place.path("go-late"), "").expect("written");
    let stored = loop {
        daemon.wait_for_lines(1);
        let stored = place.stored();
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
        assert_eq!(String::from_utf8(place.output(run)).expect("text"), expected(number), "{number}");
    }
    assert_eq!(place.keeper(), Some(keeper), "it is the same one");
    // What is stored need not be kept twice.
    eventually("no output is left", || place.kept_outputs() == 0);
    assert_eq!(daemon.stop().0.code(), Some(0));
}

#[test]
fn a_stopped_daemon_leaves_programs_running() {
    let place = Place::new("leave");
    let go = place.path("go");
    let yaml = format!("program: 'until [ -e {} ]; do sleep 0.02; done'\nschedule: '@reboot'\n", go.display());
    place.put_job("wait", &yaml);
    let mut daemon = place.up();
    daemon.wait_until_run("wait#1", "running");
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0));
    let is_left = |line| find_event(line, "programs_left", &[("count", "1")]).is_some();
    assert!(log.lines().any(is_left), "{log}");
    let mut daemon = Daemon::start(&mut place.command(&["--jobs", "jobs"]));
    daemon.wait_for_event("programs_found", &[("running", "1"), ("ended", "0")]);
    fs::write(go, "").expect("written");
    daemon.wait_until_run("wait#1", "success");
    daemon.kill();
}

#[test]
fn a_lost_keeper() {
    let place = Place::new("lost");
    let pid = place.path("pid");
    let escaped = place.path("escaped");
    let program = format!(
        "echo $$ > {}; setsid sh -c \"echo \\$\\$ > {}; sleep 55\" & sleep 55",
        pid.display(),
        escaped.display()
    );
    place.put_job("sleep", &format!("program: '{program}'\nschedule: '@reboot'\n"));
    place.put_job("tick", "program: 'true'\nschedule: {every: 1s}\n");
    let mut daemon = place.up();
    daemon.wait_until_run("sleep#1", "running");
    let is_written = |file: &Path| fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n'));
    eventually("both are there", || is_written(&pid) && is_written(&escaped));
    let keeper = place.keeper().expect("a keeper");
    kill_process(keeper, Signal::KILL).expect("it runs");
    assert_keeper_lost(&daemon.wait_until_run("sleep#1", "error"));
    place.wait_for_death(&pid);
    place.wait_for_death(&escaped);
    assert_ne!(place.keeper(), Some(keeper));
    // A new one works.
    daemon.wait_for_event("run_state", &[("state", "success")]);
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// Both are killed: the next daemon starts the next keeper, which ends what is left.
#[test]
fn both_lost() {
    let place = Place::new("both");
    let pid = place.path("pid");
    let program = format!("echo $$ > {}; sleep 55", pid.display());
    place.put_job("sleep", &format!("program: '{program}'\nlock: true\nschedule: '@reboot'\n"));
    let mut daemon = place.up();
    daemon.wait_until_run("sleep#1", "running");
    eventually("it is there", || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    kill_process(place.keeper().expect("a keeper"), Signal::KILL).expect("it runs");
    daemon.kill();
    let mut daemon = Daemon::start(&mut place.command(&["--jobs", "jobs"]));
    assert_keeper_lost(&daemon.wait_until_run("sleep#1", "error"));
    place.wait_for_death(&pid);
    // Nothing is in the way of the next.
    daemon.kill();
    let mut daemon = Daemon::start(&mut place.command(&["--jobs", "jobs"]));
    daemon.wait_until_logged("run_state", &[("state", "running")]);
    daemon.kill();
}

/// What a program writes while no daemon is there belongs to its run, also when the keeper is lost before the next
/// daemon comes, and whichever of the two is lost first.
#[test]
fn what_was_written_without_a_daemon_outlives_a_lost_keeper() {
    for is_keeper_first in [false, true] {
        let place = Place::new(&format!("unseen-{is_keeper_first}"));
        let (go, done) = (place.path("go"), place.path("done"));
        let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
        let program = format!("echo seen; {wait}; seq 1 100000; printf unseen; touch {}; sleep 55", done.display());
        place.put_job("talk", &format!("program: '{program}'\nschedule: '@reboot'\n"));
        let mut daemon = place.up();
        daemon.wait_until_run("talk#1", "running");
        let run = place.stored().run("talk", 1).clone();
        eventually("the beginning is there", || place.output(&run) == b"seen\n");
        let keeper = place.keeper().expect("a keeper");
        if is_keeper_first {
            // A daemon that is stopped does not start another keeper.
            daemon.send(Signal::STOP);
            kill_process(keeper, Signal::KILL).expect("it runs");
        }
        daemon.kill();
        fs::write(&go, "").expect("written");
        eventually("it has written", || done.exists());
        if !is_keeper_first {
            kill_process(keeper, Signal::KILL).expect("it runs");
        }
        let mut daemon = Daemon::start(&mut place.command(&["--jobs", "jobs"]));
        assert_keeper_lost(&daemon.wait_until_run("talk#1", "error"));
        let numbers: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
        assert!(place.output(&run) == format!("seen\n{numbers}unseen").into_bytes());
        daemon.kill();
    }
}

const JOBS: usize = 20;
const ROUNDS: usize = 12;

/// The daemon is killed again and again while programs are being started and end. Each is started at most once, and what
/// was started is known to the end.
#[test]
fn killed_while_starting() {
    let place = Place::new("starting");
    let starts = place.path("starts");
    let program = format!("echo $CRONHOLD_RUN_ID >> {}; echo out $CRONHOLD_RUN_ID; exit 4", starts.display());
    for number in 0..JOBS {
        let rest = "shell: /bin/sh\nsuccess_codes: [4]\noverlap: allow\ncatch_up: {policy: all, within: 1h}";
        let yaml = format!("program: '{program}'\n{rest}\nschedule: {{every: 1s}}\n");
        place.put_job(&format!("busy/{number}"), &yaml);
    }
    for round in 0..ROUNDS {
        let mut daemon = place.up();
        // Not at the same point of each second, and not only between two of them.
        daemon.wait_for_lines(1 + round * 17 % (2 * JOBS));
        daemon.kill();
    }
    let mut daemon = place.up();
    let reached = place.stored().reached();
    let stored = daemon.wait_until_complete(&place, &reached, JOBS);
    daemon.kill();
    let text = fs::read_to_string(&starts).expect("there");
    let mut started: Vec<&str> = text.lines().collect();
    let count = started.len();
    started.sort_unstable();
    started.dedup();
    assert_eq!(started.len(), count, "something was started twice");
    let over = stored.runs.iter().filter(|run| run.state.is_finished());
    for run in over.filter(|run| run.state != State::Skipped) {
        let id = run.id.to_string();
        let has_started = started.binary_search(&id.as_str()).is_ok();
        assert_eq!(has_started, run.state == State::Success, "{id}: {:?} {:?}", run.reason, run.log);
        if has_started {
            assert_eq!(String::from_utf8(place.output(run)).expect("text"), format!("out {id}\n"));
        }
    }
}
