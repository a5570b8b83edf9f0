//! Job files that are changed, broken or removed between two starts.

use std::fs;

use super::daemon::{Daemon, Sandbox};

pub(crate) const TICK: &str = "program: {noop: true}\nschedule: {every: 1s}\n";

/// Ids and revisions of the stored jobs.
pub(crate) fn jobs(sandbox: &Sandbox) -> String {
    let stored = sandbox.stored();
    let jobs = stored.jobs.iter().map(|job| format!("{} {}", job.id, job.revision));
    jobs.collect::<Vec<_>>().join(", ")
}

#[test]
fn restart_applies_changed_job_files() {
    let sandbox = Sandbox::new("follow");
    sandbox.put_job("a", TICK);
    sandbox.put_job("b/c", TICK);
    // The counts in the log: new or changed jobs, removed jobs, unchanged jobs, and jobs whose file is invalid.
    let up = |[put, removed, unchanged, kept]: [&str; 4], stored: &str| {
        let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
        let counts = [("put", put), ("removed", removed), ("unchanged", unchanged), ("kept", kept)];
        daemon.wait_for_event("job_files_loaded", &counts);
        daemon.wait_for("ready");
        assert_eq!(jobs(&sandbox), stored);
        daemon.kill();
    };
    up(["2", "0", "0", "0"], "a 1, b/c 1");
    up(["0", "0", "2", "0"], "a 1, b/c 1");
    sandbox.put_job("a", &TICK.replace("1s", "2s"));
    up(["1", "0", "1", "0"], "a 2, b/c 1");
    fs::remove_file(sandbox.job_file("b/c")).expect("there");
    up(["0", "1", "1", "0"], "a 2");
    sandbox.put_job("b/c", TICK);
    up(["1", "0", "1", "0"], "a 2, b/c 1");
    // An invalid file does not remove its job.
    sandbox.put_job("b/c", "progam: nothing\n");
    up(["0", "0", "1", "1"], "a 2, b/c 1");
    // An empty directory is more likely one that is not mounted.
    fs::remove_dir_all(sandbox.path("jobs")).expect("there");
    fs::create_dir(sandbox.path("jobs")).expect("gone");
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    daemon.wait_for_event("job_files_empty", &[("kept", "2")]);
    daemon.wait_for("ready");
    assert_eq!(jobs(&sandbox), "a 2, b/c 1");
    daemon.kill();
}

/// An invalid file is logged with line and column, its last valid version continues, and other jobs are not affected.
#[test]
fn invalid_file_does_not_affect_other_jobs() {
    let sandbox = Sandbox::new("bad");
    sandbox.put_job("good", TICK);
    sandbox.put_job("turns-bad", TICK);
    sandbox.put_job("bad", "program: {noop: true}\nschedule: {every: 1 fortnight}\n");
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    daemon.wait_for_event("job_file_invalid", &[("file", "jobs/bad.yaml"), ("line", "2"), ("column", "21")]);
    daemon.wait_for_run("turns-bad#1", "success");
    daemon.kill();
    sandbox.put_job("turns-bad", "program: {noop: true}\nschedule: 61 * * * *\n");
    let mut daemon = Daemon::start(&mut sandbox.command(&["--jobs", "jobs"]));
    daemon.wait_for_event("job_file_invalid", &[("file", "jobs/turns-bad.yaml"), ("line", "2"), ("column", "11")]);
    daemon.wait_for_run("turns-bad#2", "success");
    daemon.wait_for_event("run_state", &[("job", "good")]);
    assert_eq!(jobs(&sandbox), "good 1, turns-bad 1");
    daemon.kill();
}

/// Without `--jobs`, the daemon runs the stored jobs.
#[test]
fn daemon_without_job_files_runs_stored_jobs() {
    let sandbox = Sandbox::new("stored");
    sandbox.put_job("tick", TICK);
    sandbox.up().kill();
    let mut daemon = Daemon::start(&mut sandbox.command(&[]));
    daemon.wait_for_event("run_state", &[("state", "success")]);
    daemon.kill();
}
