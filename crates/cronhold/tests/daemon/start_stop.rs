//! Starting and stopping the daemon.

use std::process::Stdio;

use cronhold_core::{RunNumber, State};
use rustix::process::{Pid, Signal, kill_process};

use super::daemon::{Daemon, Place, Stored, transcript};
use super::log_lines::find_event;

#[test]
fn signal_stops_daemon_with_exit_code_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = Place::new("stop");
        place.put_job("tick", "program: {noop: true}\nschedule: {every: 1s}\n");
        let mut daemon = place.up();
        daemon.wait_for_run("tick#1", "success");
        daemon.send(signal);
        let (status, log) = daemon.end();
        assert_eq!(status.code(), Some(0), "{log}");
        let last = log.lines().last().expect("a log");
        assert!(find_event(last, "stopped", &[]).is_some(), "{log}");
    }
}

/// A run that is running when the daemon stops continues after the next start.
#[test]
fn running_noop_continues_after_restart() {
    let place = Place::new("outlive");
    place.put_job("nap", "program: {noop: 2s}\nschedule: '@reboot'\n");
    // `@reboot` runs a job at the next start after it was added.
    place.up().kill();
    let mut daemon = place.up();
    daemon.wait_for_run("nap#1", "running");
    assert_eq!(daemon.stop().0.code(), Some(0));
    let mut daemon = Daemon::start(&mut place.command(&["--jobs", "jobs"]));
    daemon.wait_for_event("recovered", &[("unfinished", "1")]);
    let ended = daemon.wait_for_run("nap#1", "success");
    assert!(ended["took_ms"].as_u64().is_some_and(|took| took >= 2_000), "{ended}");
    daemon.kill();
    let stored = place.stored();
    let first = stored.runs.iter().find(|run| run.number == RunNumber(1)).expect("the run is stored");
    let launches = first.log.iter().filter(|transition| transition.state == State::Running).count();
    assert_eq!(launches, 1, "it was not started again: {:?}", first.log);
}

#[test]
fn two_daemons_cannot_share_a_directory() {
    let place = Place::new("two");
    place.put_job("tick", "program: {noop: true}\nschedule: triggered\n");
    let daemon = place.up();
    let pid = format!("pid {}", daemon.pid());
    let shown = transcript(&mut place.command(&[]));
    let here = format!("{}/", place.path("").canonicalize().expect("there").display());
    insta::assert_snapshot!(shown.replace(&pid, "pid PID").replace(&here, ""));
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// The reader of the log may close the pipe.
#[test]
fn closed_log_pipe_does_not_stop_daemon() {
    let place = Place::new("unread");
    place.put_job("tick", "program: {noop: true}\nschedule: {every: 1s}\n");
    let mut command = place.command(&["--jobs", "jobs", "--verbose"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    drop(child.stderr.take());
    let is_done = |stored: &Stored| stored.runs.iter().any(|run| run.state.is_finished());
    while !Stored::try_read(&place.path("home/cronhold.db")).as_ref().is_ok_and(is_done) {
        assert_eq!(child.try_wait().expect("one's own child"), None, "it has ended");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// With `--quiet`, the daemon logs only warnings and errors. With `--verbose`, it logs each state.
#[test]
fn quiet_and_verbose_choose_the_log_level() {
    let place = Place::new("words");
    place.put_job("tick", "program: {noop: true}\nschedule: '@reboot'\n");
    place.put_job("fetch", "program: [/does/not/exist]\nschedule: '@reboot'\n");
    let mut daemon = Daemon::start(&mut place.command(&["--jobs", "jobs", "--verbose"]));
    daemon.wait_for_event("job_put", &[("job", "tick"), ("revision", "1")]);
    for state in ["waiting", "starting", "success"] {
        daemon.wait_for_run("tick#1", state);
    }
    daemon.wait_until_run("fetch#1", "error");
    let (_, log) = daemon.stop();
    let is_refused = |line| find_event(line, "run_state", &[("job", "fetch"), ("number", "1"), ("state", "error")]);
    assert!(log.lines().any(|line| is_refused(line).is_some()), "{log}");

    let mut daemon = Daemon::start(&mut place.command(&["--jobs", "jobs", "--quiet"]));
    daemon.wait_for_run("fetch#2", "error");
    let (_, log) = daemon.stop();
    assert_eq!(log.lines().count(), 1, "{log}");
}
