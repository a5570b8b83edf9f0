//! What must not happen too early or too late.

use cronhold_core::record::Cursor;

use super::*;
use crate::check::DaemonChange;
use State::{Scheduled, Starting, Waiting};

const OBLIGATIONS: &str = "every obligation is met within a watchdog period";

/// A cursor that is due at a second.
fn cursor(second: i64) -> Record {
    let at = Some(Instant::from_secs(second));
    Record::Cursor(Arc::new(Cursor {
        job: job_id(),
        schedule: schedule_id(),
        since: Instant::EPOCH,
        last: None,
        next: at,
        wake: at,
        revision: 1,
        zones: "2026a".into(),
        generation: 0,
        follows: None,
        at_start: false,
        streak: None,
    }))
}

/// A node that works, and lets so many seconds pass.
fn lives(bench: &mut Bench, secs: u64) {
    for _ in 0..secs {
        bench.pass(1);
        bench.beat(&node("any", false));
    }
}

fn turn(bench: &mut Bench, turn: DaemonChange) {
    bench.show(|checkers, scene| checkers.turned(scene, Some(NODE), turn));
}

/// Second 1020, with a node that works and something that was due at second 1010.
fn due() -> Bench {
    let mut bench = Bench::shared(OBLIGATIONS, job());
    turn(&mut bench, DaemonChange::Up);
    bench.commit(&unit([cursor(1_010)]));
    lives(&mut bench, 20);
    bench
}

#[test]
fn what_is_due_is_done_within_a_period() {
    let mut bench = due();
    lives(&mut bench, 75);
    bench.says("");
    lives(&mut bench, 10);
    bench.says("j s was due at 1970-01-01T00:16:50Z");
    let mut met = due();
    met.commit(&unit([cursor(5_000)]));
    lives(&mut met, 200);
    met.says("");
}

/// Only who was able to do it can be blamed.
#[test]
fn who_cannot_work_is_not_blamed() {
    let mut down = due();
    turn(&mut down, DaemonChange::Down);
    lives(&mut down, 300);
    down.says("");
    turn(&mut down, DaemonChange::Up);
    lives(&mut down, 85);
    down.says("");
    lives(&mut down, 100);
    down.says("j s was due at");
    let mut still = due();
    still.pass(300);
    lives(&mut still, 85);
    still.says("");
    let mut slow = due();
    slow.show(|checkers, scene| checkers.turned(scene, None, DaemonChange::Storm));
    lives(&mut slow, 300);
    slow.show(|checkers, scene| checkers.turned(scene, None, DaemonChange::Lull));
    lives(&mut slow, 85);
    slow.says("");
    let mut disturbed = due();
    for _ in 0..10 {
        turn(&mut disturbed, DaemonChange::Disturbed);
        lives(&mut disturbed, 60);
    }
    disturbed.says("");
}

#[test]
fn runs_are_looked_at_when_they_are_due() {
    let mut bench = Bench::shared(OBLIGATIONS, job());
    turn(&mut bench, DaemonChange::Up);
    let waiting = Run { due: Some(Instant::from_secs(1_060)), ..run(1, &[Waiting]) };
    bench.commit(&unit([put(&waiting)]));
    lives(&mut bench, 300);
    bench.says("j#1, which is waiting, was due at");
}

#[test]
fn a_run_on_each_node_is_on_each() {
    let other = NodeId::from_bits(2);
    let job = job_with(|job| job.nodes = cronhold_core::job::NodeSelector::Each(BTreeSet::new()));
    let claim = unit([put(&Run { target: Some(other), ..run(1, &[Waiting]) })]);
    let mut bench = Bench::shared("a run on each node is on each", job);
    turn(&mut bench, DaemonChange::Up);
    lives(&mut bench, 10);
    bench.commit(&claim);
    bench.says("");
    lives(&mut bench, 10);
    bench.commit(&unit([put(&Run { target: Some(other), ..run(2, &[Waiting]) })]));
    bench.says("j has no run for 1970-01-01T00:16:42Z on n1, which is there");
}

#[test]
fn nothing_starts_before_it_is_due() {
    let mut bench = Bench::shared("nothing starts before it is due", job());
    bench.commit(&unit([put(&run(1, &[Waiting, Starting]))]));
    bench.says("nothing starts before it is due: j#1 starts at");
    let mut bench = Bench::shared("nothing starts before it is due", job());
    let retry = Run { due: Some(Instant::from_secs(1_100)), ..run(1, &[Scheduled]) };
    bench.commit(&unit([put(&retry)]));
    bench.pass(50);
    bench.commit(&unit([put(&run(1, &[Scheduled, Waiting, Starting]))]));
    bench.says("is due at 1970-01-01T00:18:20Z");
}

#[test]
fn a_node_that_drains_starts_nothing() {
    let mut bench = Bench::shared("a node that drains starts nothing", job());
    bench.beat(&node("any", true));
    let looks = |bench: &mut Bench| bench.show(|checkers, scene| checkers.saw_nodes(scene, NODE));
    looks(&mut bench);
    bench.commit(&unit([put(&run(50, &[Waiting, Starting]))]));
    bench.says("");
    looks(&mut bench);
    // It is said to have started at second 1001.
    bench.commit(&unit([put(&run(1, &[Waiting, Starting]))]));
    bench.says("");
    bench.commit(&unit([put(&run(60, &[Waiting, Starting]))]));
    bench.says("j#60 starts at 1970-01-01T00:17:40Z on a node that knows since");
}
