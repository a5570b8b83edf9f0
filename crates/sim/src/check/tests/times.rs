//! Events that are too early or too late.

use cronhold_core::record::{ClaimedRanges, Cursor};

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
        claimed: ClaimedRanges::default(),
    }))
}

/// Lets `secs` seconds pass with a heartbeat in each.
fn run_node(bench: &mut Bench, secs: u64) {
    for _ in 0..secs {
        bench.pass(1);
        bench.beat(&node("any", false));
    }
}

fn change(bench: &mut Bench, change: DaemonChange) {
    bench.notify(|checkers, context| checkers.daemon_changed(context, Some(NODE), change));
}

/// Second 1020, with a working node and an obligation that was due at second 1010.
fn due() -> Bench {
    let mut bench = Bench::shared(OBLIGATIONS, job());
    change(&mut bench, DaemonChange::Up);
    bench.commit(&unit([cursor(1_010)]));
    run_node(&mut bench, 20);
    bench
}

#[test]
fn obligation_not_met_within_a_period_is_reported() {
    let mut bench = due();
    run_node(&mut bench, 75);
    bench.expect("");
    run_node(&mut bench, 10);
    bench.expect("j s was due at 1970-01-01T00:16:50Z");
    let mut met = due();
    met.commit(&unit([cursor(5_000)]));
    run_node(&mut met, 200);
    met.expect("");
}

/// Only nodes that were able to work are responsible.
#[test]
fn nodes_with_faults_are_not_responsible() {
    let mut down = due();
    change(&mut down, DaemonChange::Down);
    run_node(&mut down, 300);
    down.expect("");
    change(&mut down, DaemonChange::Up);
    run_node(&mut down, 85);
    down.expect("");
    run_node(&mut down, 100);
    down.expect("j s was due at");
    let mut still = due();
    still.pass(300);
    run_node(&mut still, 85);
    still.expect("");
    let mut slow = due();
    slow.notify(|checkers, context| checkers.daemon_changed(context, None, DaemonChange::StoreFaultBegins));
    run_node(&mut slow, 300);
    slow.notify(|checkers, context| checkers.daemon_changed(context, None, DaemonChange::StoreFaultEnds));
    run_node(&mut slow, 85);
    slow.expect("");
    let mut disturbed = due();
    for _ in 0..10 {
        change(&mut disturbed, DaemonChange::Disturbed);
        run_node(&mut disturbed, 60);
    }
    disturbed.expect("");
}

#[test]
fn due_run_that_stays_waiting_is_reported() {
    let mut bench = Bench::shared(OBLIGATIONS, job());
    change(&mut bench, DaemonChange::Up);
    let waiting = Run { due: Some(Instant::from_secs(1_060)), ..run(1, &[Waiting]) };
    bench.commit(&unit([put(&waiting)]));
    run_node(&mut bench, 300);
    bench.expect("j#1, which is waiting, was due at");
}

#[test]
fn missing_run_on_a_node_is_reported() {
    let other = NodeId::from_bits(2);
    let job = job_with(|job| job.nodes = cronhold_core::job::NodeSelector::Each(BTreeSet::new()));
    let claim = unit([put(&Run { target: Some(other), ..run(1, &[Waiting]) })]);
    let mut bench = Bench::shared("each node gets its run", job);
    change(&mut bench, DaemonChange::Up);
    run_node(&mut bench, 10);
    bench.commit(&claim);
    bench.expect("");
    run_node(&mut bench, 10);
    bench.commit(&unit([put(&Run { target: Some(other), ..run(2, &[Waiting]) })]));
    bench.expect("j has no run for 1970-01-01T00:16:42Z on n1, which is up");
}

#[test]
fn early_starts_are_reported() {
    let mut bench = Bench::shared("nothing starts before it is due", job());
    bench.commit(&unit([put(&run(1, &[Waiting, Starting]))]));
    bench.expect("nothing starts before it is due: j#1 starts at");
    let mut bench = Bench::shared("nothing starts before it is due", job());
    let retry = Run { due: Some(Instant::from_secs(1_100)), ..run(1, &[Scheduled]) };
    bench.commit(&unit([put(&retry)]));
    bench.pass(50);
    bench.commit(&unit([put(&run(1, &[Scheduled, Waiting, Starting]))]));
    bench.expect("is due at 1970-01-01T00:18:20Z");
}

#[test]
fn start_on_a_draining_node_is_reported() {
    let mut bench = Bench::shared("a draining node starts nothing", job());
    bench.beat(&node("any", true));
    let read_nodes = |bench: &mut Bench| bench.notify(|checkers, context| checkers.received_nodes(context, NODE));
    read_nodes(&mut bench);
    bench.commit(&unit([put(&run(50, &[Waiting, Starting]))]));
    bench.expect("");
    read_nodes(&mut bench);
    // Its start is recorded at second 1001.
    bench.commit(&unit([put(&run(1, &[Waiting, Starting]))]));
    bench.expect("");
    bench.commit(&unit([put(&run(60, &[Waiting, Starting]))]));
    bench.expect("j#60 starts at 1970-01-01T00:17:40Z on a node that knows since");
}
