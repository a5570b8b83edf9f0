//! A daemon that is killed with SIGKILL.

use cronhold_daemon::clock::{SystemClock, now};
use cronhold_engine::MachineClock;
use cronhold_schedule::{Instant, Span};

use super::daemon::{Daemon, Sandbox};

const JOBS: usize = 100;
const ROUNDS: usize = 20;
/// Kills shortly before an instant, and how long before it.
const EARLY_ROUNDS: u64 = 6;
const EARLY_STEP_MILLIS: u64 = 30;

/// The daemon is killed 20 times under load. Each occurrence has one outcome, and no run stays unfinished.
#[test]
fn daemon_killed_repeatedly_records_one_outcome_per_occurrence() {
    let sandbox = busy_sandbox("killed");
    let mut interrupted = 0;
    for round in 0..ROUNDS {
        let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
        let found = daemon.wait_for("recovered");
        interrupted += usize::from(found["unfinished"] != 0);
        daemon.wait_for("ready");
        // The kills hit different points of each second.
        daemon.wait_for_lines(1 + round * 37 % (JOBS * 3 / 2));
        daemon.kill();
    }
    assert!(interrupted > 0, "no kill interrupted a run");
    assert_complete(&sandbox);
}

/// The claims of an instant are executed before it, in a transaction that is open until it comes. The daemon is killed
/// while it is open: nothing of it is stored, and the next daemon claims everything.
#[test]
fn daemon_killed_before_an_instant_has_stored_nothing_of_it() {
    let sandbox = busy_sandbox("killed-before");
    for round in 1..=EARLY_ROUNDS {
        let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
        daemon.wait_for("ready");
        daemon.wait_for_lines(JOBS);
        let instant = Instant::from_secs(now().secs() + 2);
        wait_until(instant.minus(Span::from_millis(EARLY_STEP_MILLIS * round)));
        daemon.kill();
        let killed = now();
        let stored = sandbox.stored();
        let early: Vec<_> = stored.runs.iter().filter(|run| run.nominal > killed).collect();
        assert!(early.is_empty(), "stored before their time: {early:?}");
        assert!(stored.cursors.iter().all(|cursor| cursor.last.is_none_or(|last| last <= killed)));
    }
    assert_complete(&sandbox);
}

fn wait_until(at: Instant) {
    let executor = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("an executor");
    executor.block_on(async { SystemClock::new().expect("a timer").sleep(at.since(now())).await });
}

/// Jobs that are all due every second.
fn busy_sandbox(name: &str) -> Sandbox {
    let sandbox = Sandbox::new(name);
    for number in 0..JOBS {
        let program = if number % 4 == 0 { "100ms" } else { "true" };
        let rest = "overlap: allow\ncatch_up: {policy: all, within: 1h}\nschedule: {every: 1s}\n";
        sandbox.put_job(&format!("busy/{number}"), &format!("program: {{noop: {program}}}\n{rest}"));
    }
    sandbox
}

/// Starts a last daemon, and checks that each occurrence has one outcome.
fn assert_complete(sandbox: &Sandbox) {
    let mut daemon = sandbox.up();
    daemon.wait_for_lines(JOBS);
    let reached = sandbox.stored().reached();
    assert_eq!(reached.len(), JOBS, "every job has a claimed occurrence");
    let stored = daemon.wait_until_complete(sandbox, &reached, JOBS);
    let lost = stored.runs.iter().filter(|run| run.reason.is_some()).count();
    assert_eq!(lost, 0, "a noop run is never lost");
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}
