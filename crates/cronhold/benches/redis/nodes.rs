//! Several nodes on one store: how often a command is decided again because another node was first, and the runs per
//! second of all nodes together. Each node has a thread of its own, as a daemon has.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use cronhold_cli::CliError;
use cronhold_daemon::bench::node::{BenchNode, NodeSetup, with_node};
use cronhold_daemon::bench::samples::{number, seconds};
use cronhold_engine::NodeHandle;
use cronhold_schedule::Span;
use cronhold_wiring::StoreUrl;

use crate::place::{Place, rest};
use crate::report::{Report, Target};
use crate::rig::{block_on, scratch};

/// Nodes on the same store.
const NODES: usize = 3;
/// Jobs that are all due at one instant, and the seconds between two instants.
const AT_ONCE: (usize, usize) = (10_000, 5);
/// Jobs that are due every second, more than the nodes can start.
const FREQUENT: usize = 20_000;
const WARM_UP: Span = Span::from_secs(6);
const FOR: Span = Span::from_secs(20);
/// Interval at which a node checks whether the measurement is over.
const POLL_INTERVAL: Span = Span::from_millis(50);

/// What the nodes of a store did during a measurement.
struct Totals {
    finished: f64,
    committed: f64,
    repeated: f64,
}

pub(crate) fn measure(report: &mut Report, place: &Place) {
    let (jobs, every) = AT_ONCE;
    let totals = totals_of(place, NODES, jobs, every);
    let what = format!("{NODES} nodes, {jobs} jobs due at one instant");
    report.note(format!("{what}: runs"), totals.finished / seconds(FOR), "/s");
    let ratio = totals.repeated / totals.committed.max(1.0);
    report.compare(format!("{what}: decided again per unit"), ratio, "", Target::AtMost(0.1));
    let mut rates = Vec::new();
    for nodes in [1, NODES, 10] {
        let totals = totals_of(place, nodes, FREQUENT, 1);
        let what = format!("no-op runs by {FREQUENT} schedules, nodes: {nodes}");
        report.note(format!("{what}: runs"), totals.finished / seconds(FOR), "/s");
        report.note(format!("{what}: decided again per unit"), totals.repeated / totals.committed.max(1.0), "");
        rates.push(totals.finished);
    }
    report.compare(format!("  ratio of {NODES} nodes to one"), rates[1] / rates[0].max(1.0), "", Target::AtLeast(1.0));
}

/// Measures nodes on a new store with jobs that are all due every `every` seconds.
fn totals_of(place: &Place, nodes: usize, jobs: usize, every: usize) -> Totals {
    let dir = scratch("nodes");
    let store = place.store_of(&dir);
    place.server.cli(&["FLUSHALL"]);
    let is_over = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let mut handles: Vec<NodeHandle> = Vec::new();
    let mut threads = Vec::new();
    for index in 0..nodes {
        // The first node puts the jobs, and the others find them.
        let jobs = if index == 0 { jobs } else { 0 };
        let (node_dir, store, is_over, sender) =
            (dir.join(index.to_string()), store.clone(), Arc::clone(&is_over), sender.clone());
        threads.push(thread::spawn(move || run_node(&node_dir, store, index, (jobs, every), &sender, &is_over)));
        handles.push(receiver.recv().expect("the node works"));
    }
    rest(WARM_UP);
    let before = read(&handles);
    rest(FOR);
    let after = read(&handles);
    is_over.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("the node works"));
    let _ = std::fs::remove_dir_all(dir);
    Totals {
        finished: after.finished - before.finished,
        committed: after.committed - before.committed,
        repeated: after.repeated - before.repeated,
    }
}

/// Runs a node until the measurement is over.
fn run_node(
    dir: &Path,
    store: StoreUrl,
    index: usize,
    (jobs, every): (usize, usize),
    started: &mpsc::Sender<NodeHandle>,
    is_over: &AtomicBool,
) {
    std::fs::create_dir_all(dir).expect("a directory");
    let setup = NodeSetup::new(dir, store).numbered(index);
    let work = async |node: &BenchNode| -> Result<(), CliError> {
        let yaml =
            format!("program: {{noop: true}}\noverlap: allow\nschedule: {{every: {every}s}}\nretain: {{success: 5}}\n");
        node.put_jobs(jobs, |_| yaml.clone()).await?;
        started.send(node.node.clone()).expect("the benchmark waits for it");
        while !is_over.load(Ordering::Relaxed) {
            // Otherwise the recorder would grow.
            drop(node.recorder.take_starts());
            node.clock.sleep(POLL_INTERVAL).await;
        }
        Ok(())
    };
    block_on(with_node(setup, std::future::pending(), work)).expect("the node works");
}

fn read(handles: &[NodeHandle]) -> Totals {
    let mut totals = Totals { finished: 0.0, committed: 0.0, repeated: 0.0 };
    for counters in handles.iter().map(NodeHandle::counters) {
        totals.finished += number(counters.finished);
        totals.committed += number(counters.committed);
        totals.repeated += number(counters.repeated);
    }
    totals
}
