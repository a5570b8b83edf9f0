//! A daemon that is killed with SIGKILL.

use super::daemon::{Daemon, Sandbox};

const JOBS: usize = 100;
const ROUNDS: usize = 20;

/// The daemon is killed 20 times under load. Each occurrence has one outcome, and no run stays unfinished.
#[test]
fn daemon_killed_repeatedly_records_one_outcome_per_occurrence() {
    let sandbox = Sandbox::new("killed");
    for number in 0..JOBS {
        let program = if number % 4 == 0 { "100ms" } else { "true" };
        let rest = "overlap: allow\ncatch_up: {policy: all, within: 1h}\nschedule: {every: 1s}\n";
        sandbox.put_job(&format!("busy/{number}"), &format!("program: {{noop: {program}}}\n{rest}"));
    }
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
    let mut daemon = sandbox.up();
    daemon.wait_for_lines(JOBS);
    let reached = sandbox.stored().reached();
    assert_eq!(reached.len(), JOBS, "every job has a claimed occurrence");
    let stored = daemon.wait_until_complete(&sandbox, &reached, JOBS);
    let lost = stored.runs.iter().filter(|run| run.reason.is_some()).count();
    assert_eq!(lost, 0, "a noop run is never lost");
    let (status, log) = daemon.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}
