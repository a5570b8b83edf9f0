//! What happens in a test: somebody dies at the point, once under each kind of work and three times under all of it,
//! and is started again; then it is let come to rest, and looked at.

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_schedule::Instant;

use super::outcome;
use super::place::{Daemon, Place};
use super::points::Point;
use super::processes::eventually;
use super::workload::Workload;

/// Plays all of it for one point. Most of that is waiting, so the kinds of work wait side by side.
pub(crate) fn play(point: &Point) {
    thread::scope(|scope| {
        for workload in Workload::ALL {
            scope.spawn(move || play_one(point, workload));
        }
    });
}

fn play_one(point: &Point, workload: Workload) {
    let place = Place::new(&format!("{}-{workload:?}", point.name));
    for (id, yaml) in workload.jobs(place.dir(), point.name.starts_with("stage-")) {
        place.put_job(id, &yaml);
    }
    let daemon = if point.is_of_daemon() {
        lose_daemons(&place, point, workload);
        let daemon = place.start(None);
        place.wait_until_ready(&daemon);
        daemon
    } else {
        lose_others(&place, point, workload)
    };
    // Whoever got no answer asks again, and whoever got one may.
    for death in asked_deaths(workload) {
        let mut request = Request::new(workload, death);
        eventually("what was asked for is answered", || {
            request.make(&place);
            request.is_answered
        });
    }
    come_to_rest(&place, workload);
    outcome::assert_right(point.name, point.loses_under(workload), workload, &place);
    place.done(&["holes"]);
    daemon.stop();
}

/// A daemon after the other dies.
fn lose_daemons(place: &Place, point: &Point, workload: Workload) {
    for death in 0..workload.deaths() {
        let _ = fs::remove_file(place.died());
        let mut daemon = place.start(Some(point.name));
        let mut request = Request::new(workload, death);
        eventually("the daemon is dead", || {
            request.make(place);
            daemon.is_dead()
        });
        assert!(place.died().exists(), "it died where it should");
    }
}

/// Keepers die, or what they make programs of, and the daemon goes on by itself.
fn lose_others(place: &Place, point: &Point, workload: Workload) -> Daemon {
    let mut daemon = place.start(Some(point.name));
    for death in 0..workload.deaths() {
        // The one that comes next dies, too.
        let _ = fs::remove_file(place.died());
        let mut request = Request::new(workload, death);
        eventually("somebody has died", || {
            request.make(place);
            place.died().exists()
        });
        assert!(!daemon.is_dead(), "the daemon goes on");
    }
    daemon
}

fn asked_deaths(workload: Workload) -> std::ops::Range<usize> {
    0..if workload.is_asked() { workload.deaths() } else { 0 }
}

fn key(death: usize) -> String {
    format!("death-{death}")
}

/// Somebody who wants a run, and asks until there is an answer.
struct Request {
    key: String,
    is_answered: bool,
}

impl Request {
    fn new(workload: Workload, death: usize) -> Self {
        Self { key: key(death), is_answered: !workload.is_asked() }
    }

    fn make(&mut self, place: &Place) {
        if !self.is_answered {
            self.is_answered = place.give(&["run", "asked", "--key", &self.key]).status.success();
        }
    }
}

/// Waits until all that was due is over and each job has run once more, and lets nothing begin then.
pub(crate) fn come_to_rest(place: &Place, workload: Workload) {
    let stored = place.stored();
    let cursors = stored.cursors();
    let last = cursors.iter().map(|cursor| (cursor.job.to_string(), cursor.last.unwrap_or(cursor.since)));
    let reached: BTreeMap<String, Instant> = last.collect();
    assert_eq!(reached.len(), workload.scheduled().len(), "each has one schedule");
    let is_early = |run: &Run| reached.get(run.job.as_str()).is_none_or(|reached| run.nominal <= *reached);
    eventually("all that was due is over, and it goes on", || {
        let runs = stored.runs();
        let has_gone_on = |job: &&str| {
            let is_next = |run: &Run| run.job.as_str() == *job && !is_early(run) && run.state == State::Success;
            runs.iter().any(|run| is_next(run))
        };
        runs.iter().filter(|run| is_early(run)).all(|run| run.state.is_finished())
            && workload.scheduled().iter().all(has_gone_on)
    });
    place.done(&["pause", "all"]);
    // What waits for its lock now waits for the end of the pause.
    let rests = |run: &Run| run.state.is_finished() || run.state == State::Waiting;
    eventually("nothing runs", || stored.runs().iter().all(|run| rests(run)));
}
