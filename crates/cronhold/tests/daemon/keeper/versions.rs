//! A daemon that finds a keeper of another version, as after an upgrade. A build with debug assertions can simulate
//! versions that do not exist yet.

use std::fs;

use cronhold_core::State;
use cronhold_core::record::ProgramExit;
use cronhold_keeper::PROTOCOL;
use cronhold_keeper::fail::{NEXT_PROTOCOL, OTHER_VERSION, VARIABLE};
use rustix::process::Pid;

use super::super::daemon::{Daemon, Sandbox};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// A job that is added for the next daemon.
const TICK: &str = "program: 'true'\noverlap: allow\nschedule: {every: 1s}\n";

/// A sandbox in which a keeper of another version runs a program, and no daemon runs. Also returns the keeper's pid.
fn left_behind(name: &str, role: &str) -> (Sandbox, Pid) {
    let sandbox = Sandbox::new(name);
    let program =
        format!("echo begins; until [ -e {} ]; do sleep 0.02; done; echo ends; exit 5", sandbox.path("go").display());
    sandbox.put_job("old", &format!("program: '{program}'\nshell: /bin/sh\nschedule: '@reboot'\n"));
    let mut daemon = Daemon::start(sandbox.command(&["--jobs", "jobs"]).env(VARIABLE, role));
    daemon.wait_until_run("old#1", "running");
    daemon.kill();
    sandbox.put_job("tick", TICK);
    let keeper = sandbox.keeper().expect("it keeps running");
    (sandbox, keeper)
}

fn release_program(sandbox: &Sandbox) {
    fs::write(sandbox.path("go"), "").expect("written");
}

/// Asserts that exit code and output of the old keeper's program are complete.
fn assert_whole(sandbox: &Sandbox) {
    let stored = sandbox.stored();
    let run = stored.run("old", 1);
    assert_eq!((run.state, &run.exit), (State::Failure, &Some(ProgramExit::Code(5))), "{:?}", run.log);
    assert_eq!(String::from_utf8(sandbox.output(run)).expect("text"), "begins\nends\n");
}

/// The daemon and the keeper have no common protocol version. The daemon logs that, starts no programs, and replaces
/// the keeper when the keeper's programs have ended.
#[test]
fn incompatible_keeper_is_replaced_after_its_programs_end() {
    let (sandbox, keeper) = left_behind("protocol", NEXT_PROTOCOL);
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    let line = daemon.wait_for("keeper_unavailable");
    let message = line["message"].as_str().expect("text");
    let (pid, next) = (format!("pid {}", keeper.as_raw_nonzero()), format!("protocol {}", PROTOCOL + 1));
    assert!(message.contains(&pid) && message.contains(&next), "{message}");
    // The reason for which nothing starts says the same.
    let line = daemon.wait_until_logged("keeper_failed", &[]);
    let message = line["message"].as_str().expect("text");
    assert!(message.contains(&pid) && message.contains(&next), "{message}");
    assert_eq!(sandbox.keeper(), Some(keeper), "it keeps running");
    assert_eq!(sandbox.stored().run("old", 1).state, State::Running);
    release_program(&sandbox);
    daemon.wait_until_run("old#1", "failure");
    assert_ne!(sandbox.keeper(), Some(keeper), "an idle keeper is replaced");
    assert_whole(&sandbox);
    daemon.wait_for_event("run_state", &[("state", "success")]);
    assert_eq!(daemon.stop().0.code(), Some(0));
}

/// The daemon and the keeper have a common protocol version. The daemon adopts the running program and starts others,
/// and the old keeper is replaced when it has no programs.
#[test]
fn compatible_keeper_of_another_version_is_replaced_when_idle() {
    let (sandbox, keeper) = left_behind("version", OTHER_VERSION);
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    let pid = keeper.as_raw_nonzero();
    let (version, pid) = (format!("{VERSION}-other"), pid.to_string());
    daemon.wait_for_event("keeper_connected", &[("version", &version), ("pid", &pid)]);
    daemon.wait_for_run("tick#1", "success");
    assert_eq!(sandbox.keeper(), Some(keeper), "it starts programs while it has running ones");
    release_program(&sandbox);
    daemon.wait_until_run("old#1", "failure");
    assert_whole(&sandbox);
    let line = daemon.wait_for_event("keeper_connected", &[("version", VERSION)]);
    assert_ne!(line["pid"].to_string(), pid);
    daemon.wait_for_event("run_state", &[("state", "success")]);
    assert_ne!(sandbox.keeper(), Some(keeper));
    assert_eq!(daemon.stop().0.code(), Some(0));
}
