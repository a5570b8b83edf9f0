//! Kills one process at each step of a launch and a report: the daemon or its keeper kills itself there. The test then
//! checks the recorded outcome. Fail points exist only in builds with debug assertions.

use std::fs;

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_keeper::fail::VARIABLE;
use rustix::process::{Signal, kill_process};

use super::daemon::{Daemon, Sandbox, Stored};
use super::processes::{eventually, parent, processes};

/// The output of a program that runs to its end. The program must not see the variable of the fail point.
const OUTPUT: &str = "begins\nends\n";

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The program ran once, to its end, and all of its output is stored.
    Success,
    /// An error with this reason; the program never ran.
    Never(&'static str),
    /// An error with this reason; the program may have started, and was killed.
    Killed(&'static str),
    /// Either of the two. It depends on whether the keeper read the launch before the connection closed.
    SuccessOrNever(&'static str),
}

use Outcome::{Killed, Never, Success, SuccessOrNever};

const KEEPER_LOST: &str = "keeper lost";
const START_UNKNOWN: &str = "start unknown";

/// Points of the keeper: the name, whether the program waits for the test before it ends, the outcome if the daemon
/// continues, and the outcome if the daemon is killed as well.
const KEEPER_POINTS: &[(&str, bool, Outcome, Outcome)] = &[
    // Nothing is in the journal, so nothing was started. The daemon that requested the launch requests it again. The
    // next daemon does not know whether the launch was requested, and must not request it a second time.
    ("keeper-before-intent", false, Success, Never(START_UNKNOWN)),
    // From here on the program may have started, and its end is unknown.
    ("keeper-after-intent", false, Never(KEEPER_LOST), Never(KEEPER_LOST)),
    // The process is not in the journal. The next keeper finds it by its environment or its output.
    ("keeper-after-spawn", true, Killed(KEEPER_LOST), Killed(KEEPER_LOST)),
    ("keeper-before-started-told", true, Killed(KEEPER_LOST), Killed(KEEPER_LOST)),
    // The next keeper reports what is in the journal.
    ("keeper-after-exit-written", false, Success, Success),
    ("keeper-before-forget", false, Success, Success),
];

/// Points of the daemon: the name, whether the program waits for the test, and the outcome. The keeper keeps running.
const DAEMON_POINTS: &[(&str, bool, Outcome)] = &[
    // The next daemon finds a starting run that the keeper does not know. It does not launch the run again.
    ("daemon-before-launch", false, Never(START_UNKNOWN)),
    // A keeper that reads the launch together with the end of the connection ignores the launch.
    ("daemon-after-launch", false, SuccessOrNever(START_UNKNOWN)),
    // The keeper repeats all of its reports to the next daemon.
    ("daemon-before-running", true, Success),
    ("daemon-before-report", false, Success),
    // Output that is sent twice is stored once.
    ("daemon-after-output", false, Success),
    ("daemon-before-forget", false, Success),
];

/// Points of the launch stage, the process between the keeper and a program with limits. Keeper and daemon keep
/// running, and the stage does not count as the program.
const STAGE_POINTS: &[&str] = &["stage-told", "stage-prepared"];
const STAGE_KILLED: &str = "not launched: the process was killed before it became the program";

/// A sandbox with one job, which runs once after each start of a daemon.
fn sandbox(name: &str, is_held: bool) -> Sandbox {
    let sandbox = Sandbox::new(name);
    let (starts, go) = (sandbox.path("starts"), sandbox.path("go"));
    let program = format!(
        "echo $CRONHOLD_RUN_ID >> {}; echo \"begins$CRONHOLD_FAIL_AT\"; until [ -e {} ]; do sleep 0.02; done; echo ends",
        starts.display(),
        go.display()
    );
    let limits = if name.starts_with("stage") { "limits: {files: 64}\n" } else { "" };
    let rest = format!("shell: /bin/sh\noverlap: allow\n{limits}schedule: '@reboot'");
    sandbox.put_job("job", &format!("program: '{program}'\n{rest}\n"));
    if !is_held {
        release_program(&sandbox);
    }
    sandbox
}

fn release_program(sandbox: &Sandbox) {
    fs::write(sandbox.path("go"), "").expect("written");
}

/// Starts a daemon with a fail point for itself or its keeper.
fn armed(sandbox: &Sandbox, value: &str) -> Daemon {
    Daemon::start(sandbox.command(&["--jobs", "jobs"]).env(VARIABLE, value))
}

fn wait_until_over(sandbox: &Sandbox, number: u64) {
    eventually(&format!("#{number} is over"), || {
        sandbox.stored().runs.iter().any(|run| run.number.0 == number && run.state.is_finished())
    });
}

/// Asserts that no process of these runs is left, and that neither daemon nor keeper has a zombie child.
fn assert_nothing_runs(sandbox: &Sandbox, runs: &Stored, daemon: &Daemon) {
    let marks: Vec<String> = runs.runs.iter().map(|run| format!("CRONHOLD_RUN_ID={}", run.id)).collect();
    let is_of_ours = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| marks.iter().any(|mark| mark.as_bytes() == entry))
    };
    eventually("no program is left", || !processes().any(|pid| is_of_ours(&pid)));
    eventually("no dead child is left", || {
        let keeper = sandbox.keeper().map(|pid| pid.as_raw_nonzero().get());
        let owners = [keeper, Some(daemon.pid().as_raw_nonzero().get())];
        let is_dead = |pid: i32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("State:\tZ"))
        };
        !processes().any(|pid| owners.contains(&parent(pid)) && parent(pid).is_some() && is_dead(pid))
    });
}

/// Asserts what holds for every run that was starting, at any point.
fn assert_run(point: &str, sandbox: &Sandbox, run: &Run, expected: Outcome) {
    let log = &run.log;
    let starts = fs::read_to_string(sandbox.path("starts")).unwrap_or_default();
    let id = run.id.to_string();
    let starts = starts.lines().filter(|line| *line == id).count();
    let ends = log.iter().filter(|transition| transition.state.is_finished()).count();
    assert_eq!(ends, 1, "{point}: it ended once: {log:?}");
    let entered = log.iter().filter(|transition| transition.state == State::Starting).count();
    assert_eq!(entered, 1, "{point}: it was claimed once: {log:?}");
    let reason = run.reason.as_ref().map(ToString::to_string);
    let is_error = |wanted: &str| run.state == State::Error && reason.as_deref() == Some(wanted);
    let is_success = run.state == State::Success && reason.is_none() && starts == 1;
    let is_right = match expected {
        Success => is_success,
        Never(reason) => is_error(reason) && starts == 0,
        Killed(reason) => is_error(reason) && starts <= 1,
        SuccessOrNever(reason) => is_success || is_error(reason) && starts == 0,
    };
    assert!(is_right, "{point}: not {expected:?}: {starts} starts, {:?} {reason:?} {log:?}", run.state);
    if is_success {
        assert_eq!(String::from_utf8(sandbox.output(run)).expect("text"), OUTPUT, "{point}");
        assert_eq!(run.written.as_ref().map(|written| written.bytes), Some(OUTPUT.len() as u64), "{point}");
    }
}

/// Asserts that the first run has the outcome of the point, and that the run of the next daemon succeeds.
fn assert_all(point: &str, sandbox: &Sandbox, daemon: &Daemon, expected: Outcome) {
    wait_until_over(sandbox, 1);
    if matches!(expected, Killed(_)) {
        assert!(!sandbox.path("go").exists(), "{point}: the program was not released");
        let stored = sandbox.stored();
        let first = Stored { runs: vec![stored.run("job", 1).clone().into()], ..stored };
        assert_nothing_runs(sandbox, &first, daemon);
    }
    release_program(sandbox);
    wait_until_over(sandbox, 2);
    let stored = sandbox.stored();
    assert_eq!(stored.runs.len(), 2, "{point}: one run per daemon");
    assert_run(point, sandbox, stored.run("job", 1), expected);
    assert_run(point, sandbox, stored.run("job", 2), Success);
    assert_nothing_runs(sandbox, &stored, daemon);
    eventually("no output is kept twice", || sandbox.kept_outputs() == 0);
}

/// The daemon detects the loss and starts a new keeper.
#[test]
fn keeper_killed_at_each_point_is_replaced() {
    for &(point, is_held, expected, _) in KEEPER_POINTS {
        let sandbox = sandbox(point, is_held);
        let died = sandbox.path("died");
        let mut daemon = armed(&sandbox, &format!("{point}:{}", died.display()));
        let first = daemon.wait_for("keeper_connected");
        eventually("the keeper is dead", || died.exists());
        let second = daemon.wait_for("keeper_connected");
        assert_ne!(first["pid"], second["pid"], "{point}: it is another keeper");
        wait_until_over(&sandbox, 1);
        daemon.kill();
        let daemon = sandbox.up();
        assert_all(point, &sandbox, &daemon, expected);
        assert_eq!(daemon.stop().0.code(), Some(0), "{point}");
    }
}

/// The keeper dies before the process is in its journal, and the process has no run in its environment. The next keeper
/// finds it by its output, or by its mark if it redirects its output, so it is dead before its lock is free.
#[test]
fn program_without_run_id_dies_with_a_keeper_that_did_not_record_it() {
    let files = "limits: {files: 64}\n";
    for (number, (limits, redirection)) in
        [("", ""), (files, ""), ("", "> /dev/null 2>&1"), (files, "> /dev/null 2>&1")].into_iter().enumerate()
    {
        let sandbox = Sandbox::new(&format!("unmarked-{number}"));
        // A unique sleep time, by which it is found.
        let time = format!("600.{}{number}", std::process::id());
        let rest = format!("lock: true\n{limits}schedule: '@reboot'");
        let program = format!("[env, -i, /bin/sh, -c, 'exec sleep {time} {redirection}']");
        sandbox.put_job("job", &format!("program: {program}\n{rest}\n"));
        let died = sandbox.path("died");
        let mut daemon = armed(&sandbox, &format!("keeper-after-spawn:{}", died.display()));
        daemon.wait_for("keeper_connected");
        eventually("the keeper is dead", || died.exists());
        daemon.wait_for("keeper_connected");
        wait_until_over(&sandbox, 1);
        let run = sandbox.stored().run("job", 1).clone();
        assert_eq!(run.reason.as_ref().map(ToString::to_string).as_deref(), Some(KEEPER_LOST));
        let is_ours = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == time.as_bytes())
        };
        assert_eq!(processes().filter(is_ours).count(), 0, "{limits} {redirection}");
        assert_eq!(daemon.stop().0.code(), Some(0));
    }
}

/// Every keeper is killed at the same point until the daemon is killed too. A new daemon and a new keeper take over.
#[test]
fn keeper_and_daemon_killed_at_each_point_recover() {
    for &(point, is_held, _, expected) in KEEPER_POINTS {
        let sandbox = sandbox(&format!("{point}-both"), is_held);
        let mut daemon = armed(&sandbox, point);
        // The daemon logs this when the connection closes.
        daemon.wait_for("keeper_unavailable");
        daemon.kill();
        // A keeper that the daemon has started in the meantime has the same fail point.
        eventually("no keeper is left", || {
            let keeper = sandbox.keeper();
            keeper.map(|keeper| kill_process(keeper, Signal::KILL));
            keeper.is_none()
        });
        let daemon = sandbox.up();
        assert_all(point, &sandbox, &daemon, expected);
        assert_eq!(daemon.stop().0.code(), Some(0), "{point}");
    }
}

#[test]
fn daemon_killed_at_each_point_recovers() {
    for &(point, is_held, expected) in DAEMON_POINTS {
        let sandbox = sandbox(point, is_held);
        let mut daemon = armed(&sandbox, point);
        daemon.wait_for_death();
        let keeper = sandbox.keeper();
        // Before the launch, the daemon may not have started a keeper yet.
        assert!(keeper.is_some() || point == "daemon-before-launch", "{point}: the keeper keeps running");
        release_program(&sandbox);
        let daemon = sandbox.up();
        assert_all(point, &sandbox, &daemon, expected);
        assert!(keeper.is_none() || sandbox.keeper() == keeper, "{point}: it is the same one");
        assert_eq!(daemon.stop().0.code(), Some(0), "{point}");
    }
}

#[test]
fn launch_stage_killed_at_each_point_ends_run_in_error() {
    for &point in STAGE_POINTS {
        let sandbox = sandbox(point, false);
        let mut daemon = armed(&sandbox, &format!("{point}:{}", sandbox.path("died").display()));
        daemon.wait_for("ready");
        wait_until_over(&sandbox, 1);
        let keeper = sandbox.keeper();
        daemon.kill();
        let daemon = sandbox.up();
        assert_all(point, &sandbox, &daemon, Never(STAGE_KILLED));
        assert_eq!(sandbox.keeper(), keeper, "{point}: it is the same one");
        assert_eq!(daemon.stop().0.code(), Some(0), "{point}");
    }
}
