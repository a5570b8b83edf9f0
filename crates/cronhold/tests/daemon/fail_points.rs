//! A power cut for one process at each step of a program's life: the daemon or its keeper kills itself there, and what
//! is found afterwards has to be right. Only a build with debug assertions can do so.

use std::fs;

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_keeper::fail::VARIABLE;
use rustix::process::{Signal, kill_process};

use super::daemon::{Daemon, Place, Stored};
use super::processes::{eventually, parent, processes};

/// What a program writes that is let go to its end. The variable is not for it.
const OUTPUT: &str = "begins\nends\n";

/// What becomes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Its program ran once, to its end, and all that it wrote is stored.
    Success,
    /// An error with this reason, and its program never ran.
    Never(&'static str),
    /// An error with this reason. Its program may have begun, and was killed.
    Killed(&'static str),
    /// The one or the other: whether the launch was read before the line broke.
    SuccessOrNever(&'static str),
}

use Outcome::{Killed, Never, Success, SuccessOrNever};

const KEEPER_LOST: &str = "keeper lost";
const START_UNKNOWN: &str = "start unknown";

/// A point of the keeper, whether its program waits there for a sign of ours before it ends, what becomes of the run when
/// the daemon goes on, and what when it is lost as well.
const KEEPER_POINTS: &[(&str, bool, Outcome, Outcome)] = &[
    // Nothing is written down, so nothing was begun: the daemon that knows this asks again. The next daemon does not know
    // whether the one before it had asked, and must not ask for a second time.
    ("keeper-before-intent", false, Success, Never(START_UNKNOWN)),
    // From here on it may have been begun, and nobody can tell how it ends.
    ("keeper-after-intent", false, Never(KEEPER_LOST), Never(KEEPER_LOST)),
    // The next keeper knows no process, and has to find it by its environment.
    ("keeper-after-spawn", true, Killed(KEEPER_LOST), Killed(KEEPER_LOST)),
    ("keeper-before-started-told", true, Killed(KEEPER_LOST), Killed(KEEPER_LOST)),
    // What is written down is told by the next keeper.
    ("keeper-after-exit-written", false, Success, Success),
    ("keeper-before-forget", false, Success, Success),
];

/// A point of the daemon, whether its program waits there, and what becomes of the run. The keeper goes on.
const DAEMON_POINTS: &[(&str, bool, Outcome)] = &[
    // The next daemon finds a run that starts and that the keeper does not know; it does not start it once more.
    ("daemon-before-launch", false, Never(START_UNKNOWN)),
    // A keeper that reads the launch and the end of the line in one go leaves it.
    ("daemon-after-launch", false, SuccessOrNever(START_UNKNOWN)),
    // All that the keeper knows it tells the next daemon as well.
    ("daemon-before-running", true, Success),
    ("daemon-before-report", false, Success),
    // What is stored twice is stored once.
    ("daemon-after-output", false, Success),
    ("daemon-before-forget", false, Success),
];

/// Points of what stands between the keeper and a program with limits. Both go on, and nobody takes it for the program.
const STAGE_POINTS: &[&str] = &["stage-told", "stage-prepared"];
const STAGE_KILLED: &str = "not launched: what was to become the program was killed before that";

/// A place with one job, which runs once in the life of each daemon.
fn place(name: &str, is_held: bool) -> Place {
    let place = Place::new(name);
    let (starts, go) = (place.path("starts"), place.path("go"));
    let program = format!(
        "echo $CRONHOLD_RUN_ID >> {}; echo \"begins$CRONHOLD_FAIL_AT\"; until [ -e {} ]; do sleep 0.02; done; echo ends",
        starts.display(),
        go.display()
    );
    let limits = if name.starts_with("stage") { "limits: {files: 64}\n" } else { "" };
    let rest = format!("shell: /bin/sh\noverlap: allow\n{limits}schedule: '@reboot'");
    place.put_job("job", &format!("program: '{program}'\n{rest}\n"));
    if !is_held {
        let_go(&place);
    }
    place
}

fn let_go(place: &Place) {
    fs::write(place.path("go"), "").expect("written");
}

/// Starts a daemon that is to fail, or whose keeper is.
fn armed(place: &Place, value: &str) -> Daemon {
    Daemon::start(place.command(&["--jobs", "jobs"]).env(VARIABLE, value))
}

fn wait_until_over(place: &Place, number: u64) {
    eventually(&format!("#{number} is over"), || {
        place.stored().runs.iter().any(|run| run.number.0 == number && run.state.is_finished())
    });
}

/// Asserts that nothing runs of any run, and that nobody left a dead child.
fn assert_nothing_runs(place: &Place, runs: &Stored, daemon: &Daemon) {
    let marks: Vec<String> = runs.runs.iter().map(|run| format!("CRONHOLD_RUN_ID={}", run.id)).collect();
    let is_of_ours = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| marks.iter().any(|mark| mark.as_bytes() == entry))
    };
    eventually("no program is left", || !processes().any(|pid| is_of_ours(&pid)));
    eventually("no dead child is left", || {
        let keeper = place.keeper().map(|pid| pid.as_raw_nonzero().get());
        let owners = [keeper, Some(daemon.pid().as_raw_nonzero().get())];
        let is_dead = |pid: i32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("State:\tZ"))
        };
        !processes().any(|pid| owners.contains(&parent(pid)) && parent(pid).is_some() && is_dead(pid))
    });
}

/// Asserts what holds for every run that began to start, whatever happened.
fn assert_run(point: &str, place: &Place, run: &Run, expected: Outcome) {
    let log = &run.log;
    let starts = fs::read_to_string(place.path("starts")).unwrap_or_default();
    let id = run.id.to_string();
    let starts = starts.lines().filter(|line| *line == id).count();
    let ends = log.iter().filter(|transition| transition.state.is_finished()).count();
    assert_eq!(ends, 1, "{point}: it ended once: {log:?}");
    let entered = log.iter().filter(|transition| transition.state == State::Starting).count();
    assert_eq!(entered, 1, "{point}: it was decided on once: {log:?}");
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
        assert_eq!(String::from_utf8(place.output(run)).expect("text"), OUTPUT, "{point}");
        assert_eq!(run.written.as_ref().map(|written| written.bytes), Some(OUTPUT.len() as u64), "{point}");
    }
}

/// The first run has the outcome of the point; those of later lives, for which nobody fails, succeed.
fn assert_all(point: &str, place: &Place, daemon: &Daemon, expected: Outcome) {
    wait_until_over(place, 1);
    if matches!(expected, Killed(_)) {
        assert!(!place.path("go").exists(), "{point}: nobody let it go");
        let stored = place.stored();
        let first = Stored { runs: vec![stored.run("job", 1).clone().into()], ..stored };
        assert_nothing_runs(place, &first, daemon);
    }
    let_go(place);
    wait_until_over(place, 2);
    let stored = place.stored();
    assert_eq!(stored.runs.len(), 2, "{point}: one in each life");
    assert_run(point, place, stored.run("job", 1), expected);
    assert_run(point, place, stored.run("job", 2), Success);
    assert_nothing_runs(place, &stored, daemon);
    eventually("no output is kept twice", || place.kept_outputs() == 0);
}

/// The daemon goes on with a new keeper, without being told anything.
#[test]
fn keeper_killed_at_each_point_is_replaced() {
    for &(point, is_held, expected, _) in KEEPER_POINTS {
        let place = place(point, is_held);
        let died = place.path("died");
        let mut daemon = armed(&place, &format!("{point}:{}", died.display()));
        let first = daemon.wait_for("keeper_connected");
        eventually("the keeper is dead", || died.exists());
        let second = daemon.wait_for("keeper_connected");
        assert_ne!(first["pid"], second["pid"], "{point}: it is another keeper");
        wait_until_over(&place, 1);
        daemon.kill();
        let daemon = place.up();
        assert_all(point, &place, &daemon, expected);
        assert_eq!(daemon.stop().0.code(), Some(0), "{point}");
    }
}

/// Every keeper fails at the same point until the daemon is lost too, and others begin in their place.
#[test]
fn keeper_and_daemon_killed_at_each_point_recover() {
    for &(point, is_held, _, expected) in KEEPER_POINTS {
        let place = place(&format!("{point}-both"), is_held);
        let mut daemon = armed(&place, point);
        // It says so when the line breaks, in one way or another.
        daemon.wait_for("keeper_unavailable");
        daemon.kill();
        // One that the daemon has started meanwhile would fail as well.
        eventually("no keeper is left", || {
            let keeper = place.keeper();
            keeper.map(|keeper| kill_process(keeper, Signal::KILL));
            keeper.is_none()
        });
        let daemon = place.up();
        assert_all(point, &place, &daemon, expected);
        assert_eq!(daemon.stop().0.code(), Some(0), "{point}");
    }
}

#[test]
fn daemon_killed_at_each_point_recovers() {
    for &(point, is_held, expected) in DAEMON_POINTS {
        let place = place(point, is_held);
        let mut daemon = armed(&place, point);
        daemon.wait_for_death();
        let keeper = place.keeper();
        // Nobody has waited for a keeper before the launch.
        assert!(keeper.is_some() || point == "daemon-before-launch", "{point}: the keeper goes on");
        let_go(&place);
        let daemon = place.up();
        assert_all(point, &place, &daemon, expected);
        assert!(keeper.is_none() || place.keeper() == keeper, "{point}: it is the same one");
        assert_eq!(daemon.stop().0.code(), Some(0), "{point}");
    }
}

#[test]
fn launch_stage_killed_at_each_point_ends_run_in_error() {
    for &point in STAGE_POINTS {
        let place = place(point, false);
        let mut daemon = armed(&place, &format!("{point}:{}", place.path("died").display()));
        daemon.wait_for("ready");
        wait_until_over(&place, 1);
        let keeper = place.keeper();
        daemon.kill();
        let daemon = place.up();
        assert_all(point, &place, &daemon, Never(STAGE_KILLED));
        assert_eq!(place.keeper(), keeper, "{point}: it is the same one");
        assert_eq!(daemon.stop().0.code(), Some(0), "{point}");
    }
}
