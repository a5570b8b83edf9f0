//! Starting and stopping the daemon.

use std::process::Stdio;

use cronhold_core::{RunNumber, State};
use rustix::process::{Pid, Signal, kill_process};

use super::daemon::{Daemon, Sandbox, Stored, transcript};
use super::log_lines::find_event;

#[test]
fn signal_stops_daemon_with_exit_code_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let sandbox = Sandbox::new("stop");
        sandbox.put_job("tick", "program: {noop: true}\nschedule: {every: 1s}\n");
        let mut daemon = sandbox.up();
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
    let sandbox = Sandbox::new("outlive");
    sandbox.put_job("nap", "program: {noop: 2s}\nschedule: '@reboot'\n");
    let mut daemon = sandbox.up();
    daemon.wait_for_run("nap#1", "running");
    assert_eq!(daemon.stop().0.code(), Some(0));
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    daemon.wait_for_event("recovered", &[("unfinished", "1")]);
    let ended = daemon.wait_for_run("nap#1", "success");
    assert!(ended["took_ms"].as_u64().is_some_and(|took| took >= 2_000), "{ended}");
    daemon.kill();
    let stored = sandbox.stored();
    let first = stored.runs.iter().find(|run| run.number == RunNumber(1)).expect("the run is stored");
    let launches = first.log.iter().filter(|transition| transition.state == State::Running).count();
    assert_eq!(launches, 1, "it was not started again: {:?}", first.log);
}

#[test]
fn two_daemons_cannot_share_a_directory() {
    let sandbox = Sandbox::new("two");
    sandbox.put_job("tick", "program: {noop: true}\nschedule: triggered\n");
    let daemon = sandbox.up();
    let pid = format!("pid {}", daemon.pid());
    let shown = transcript(&mut sandbox.command(&[]));
    let here = format!("{}/", sandbox.path("").canonicalize().expect("there").display());
    insta::assert_snapshot!(shown.replace(&pid, "pid PID").replace(&here, ""));
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// The reader of the log may close the pipe.
#[test]
fn closed_log_pipe_does_not_stop_daemon() {
    let sandbox = Sandbox::new("unread");
    sandbox.put_job("tick", "program: {noop: true}\nschedule: {every: 1s}\n");
    let mut command = sandbox.command(&["--jobs", "jobs", "--verbose"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    drop(child.stderr.take());
    let is_done = |stored: &Stored| stored.runs.iter().any(|run| run.state.is_finished());
    while !Stored::try_read(&sandbox.path("home/cronhold.db")).as_ref().is_ok_and(is_done) {
        assert_eq!(child.try_wait().expect("one's own child"), None, "it has ended");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// With `--quiet`, the daemon logs only warnings and errors. With `--verbose`, it logs each state.
#[test]
fn quiet_and_verbose_choose_the_log_level() {
    let sandbox = Sandbox::new("words");
    sandbox.put_job("tick", "program: {noop: true}\nschedule: '@reboot'\n");
    sandbox.put_job("fetch", "program: [/does/not/exist]\nschedule: '@reboot'\n");
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs", "--verbose"]));
    daemon.wait_for_event("job_put", &[("job", "tick"), ("revision", "1")]);
    for state in ["waiting", "starting", "success"] {
        daemon.wait_for_run("tick#1", state);
    }
    daemon.wait_until_run("fetch#1", "error");
    let (_, log) = daemon.stop();
    let is_refused = |line| find_event(line, "run_state", &[("job", "fetch"), ("number", "1"), ("state", "error")]);
    assert!(log.lines().any(|line| is_refused(line).is_some()), "{log}");

    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs", "--quiet"]));
    daemon.wait_for_run("fetch#2", "error");
    let (_, log) = daemon.stop();
    assert_eq!(log.lines().count(), 1, "{log}");
}
