//! The steps of a test: a process is killed at the point, once under each workload and three times under the mixed one,
//! and restarted. Then the test waits until nothing runs, and checks all outcomes.

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_schedule::Instant;

use super::outcome;
use super::points::Point;
use super::processes::eventually;
use super::sandbox::{Daemon, Sandbox};
use super::workload::Workload;

/// Runs the test of a point under all workloads. They run in parallel, because most of the time is spent waiting.
pub(crate) fn run(point: &Point) {
    thread::scope(|scope| {
        for workload in Workload::ALL {
            scope.spawn(move || run_workload(point, workload));
        }
    });
}

fn run_workload(point: &Point, workload: Workload) {
    let sandbox = Sandbox::new(&format!("{}-{workload:?}", point.name));
    for (id, yaml) in workload.jobs(sandbox.dir(), point.name.starts_with("stage-")) {
        sandbox.put_job(id, &yaml);
    }
    let daemon = if point.is_of_daemon() {
        lose_daemons(&sandbox, point, workload);
        let daemon = sandbox.start(None);
        sandbox.wait_until_ready(&daemon);
        daemon
    } else {
        lose_others(&sandbox, point, workload)
    };
    // A client that got no reply repeats its request, and one that got a reply may.
    for death in requested_deaths(workload) {
        let mut request = Request::new(workload, death);
        eventually("the request is answered", || {
            request.make(&sandbox);
            request.is_answered
        });
    }
    wait_until_idle(&sandbox, workload);
    outcome::assert_right(point.name, point.loses_under(workload), workload, &sandbox);
    sandbox.done(&["holes"]);
    daemon.stop();
}

/// Starts one daemon after the other and waits until each is killed at the point.
fn lose_daemons(sandbox: &Sandbox, point: &Point, workload: Workload) {
    for death in 0..workload.deaths() {
        let _ = fs::remove_file(sandbox.died());
        let mut daemon = sandbox.start(Some(point.name));
        let mut request = Request::new(workload, death);
        eventually("the daemon was killed", || {
            request.make(sandbox);
            daemon.is_dead()
        });
        assert!(sandbox.died().exists(), "it was killed at the point");
    }
}

/// Waits until keepers or launch stages are killed at the point. The daemon keeps running.
fn lose_others(sandbox: &Sandbox, point: &Point, workload: Workload) -> Daemon {
    let mut daemon = sandbox.start(Some(point.name));
    for death in 0..workload.deaths() {
        // Without the file, the next process is killed too.
        let _ = fs::remove_file(sandbox.died());
        let mut request = Request::new(workload, death);
        eventually("a process was killed", || {
            request.make(sandbox);
            sandbox.died().exists()
        });
        assert!(!daemon.is_dead(), "the daemon keeps running");
    }
    daemon
}

fn requested_deaths(workload: Workload) -> std::ops::Range<usize> {
    0..if workload.is_asked() { workload.deaths() } else { 0 }
}

fn key(death: usize) -> String {
    format!("death-{death}")
}

/// A client that requests a run until it gets a reply.
struct Request {
    key: String,
    is_answered: bool,
}

impl Request {
    fn new(workload: Workload, death: usize) -> Self {
        Self { key: key(death), is_answered: !workload.is_asked() }
    }

    fn make(&mut self, sandbox: &Sandbox) {
        if !self.is_answered {
            self.is_answered = sandbox.run_command(&["run", "asked", "--key", &self.key]).status.success();
        }
    }
}

/// Waits until all runs that were due are finished and each job has run once more. Then pauses all jobs and waits until
/// nothing runs.
pub(crate) fn wait_until_idle(sandbox: &Sandbox, workload: Workload) {
    let stored = sandbox.stored();
    let cursors = stored.cursors();
    let last = cursors.iter().map(|cursor| (cursor.job.to_string(), cursor.last.unwrap_or(cursor.since)));
    let reached: BTreeMap<String, Instant> = last.collect();
    assert_eq!(reached.len(), workload.scheduled().len(), "each job has one schedule");
    let is_early = |run: &Run| reached.get(run.job.as_str()).is_none_or(|reached| run.nominal <= *reached);
    eventually("all due runs are finished, and each job runs again", || {
        let runs = stored.runs();
        let has_gone_on = |job: &&str| {
            let is_next = |run: &Run| run.job.as_str() == *job && !is_early(run) && run.state == State::Success;
            runs.iter().any(|run| is_next(run))
        };
        runs.iter().filter(|run| is_early(run)).all(|run| run.state.is_finished())
            && workload.scheduled().iter().all(has_gone_on)
    });
    sandbox.done(&["pause", "all"]);
    // A run that waits for its lock stays waiting until the pause ends.
    let rests = |run: &Run| run.state.is_finished() || run.state == State::Waiting;
    eventually("nothing runs", || stored.runs().iter().all(|run| rests(run)));
}
