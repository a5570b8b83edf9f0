//! How the runs of three nodes on one store spread, in simulated time, so that all of it depends on fixed ids only.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};

use cronhold_core::record::{Actor, Record};
use cronhold_core::{NodeId, State};
use cronhold_engine::{Engine, NoPrograms, NodeHandle, NodePorts, Options};
use cronhold_schedule::Span;
use cronhold_store::{MemoryStore, Query, RunQuery, Store};

use super::{START, STEP, TestClock, TestPorts, at_once, job_id, put, world};

const NODES: u128 = 3;
/// Jobs that are due every ten seconds.
const JOBS: usize = 100;
/// Time until the nodes know each other and the jobs, and time that is measured.
const SETTLE: Span = Span::from_secs(25);
const FOR: Span = Span::from_secs(110);
/// The least number of runs.
const RUNS: usize = 1_000;
/// Standard deviations between a third of the runs and the number of a node, which one measurement in a billion exceeds.
const DEVIATIONS: f64 = 6.2;

#[test]
fn runs_of_many_jobs_spread_evenly_over_three_nodes() {
    let time = Arc::new(TestClock::default());
    let of_store = Arc::clone(&time);
    let store = MemoryStore::new(Arc::new(move || START.plus(of_store.passed())));
    let mut engines: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    let mut handles: Vec<NodeHandle> = Vec::new();
    for number in 1..=NODES {
        let observer = Arc::new(TestPorts::default());
        let ports = NodePorts {
            clock: Arc::clone(&time) as _,
            entropy: Arc::clone(&observer) as _,
            store: Arc::new(store.clone()),
            programs: Arc::new(NoPrograms),
            feed: observer as _,
        };
        let options = Options::new(NodeId::from_bits(number), format!("node-{number}"));
        let (engine, handle) = Engine::new(ports, options, world());
        engines.push(Box::pin(async move { engine.run().await.expect("the store works") }));
        handles.push(handle);
    }
    let mut context = Context::from_waker(Waker::noop());
    let jobs = (0..JOBS).map(|number| handles[0].request(anna(), put(&format!("job-{number}"), "@every 10s")));
    let mut requests: Vec<_> = jobs.map(Box::pin).collect();
    while time.passed() < SETTLE.plus(FOR) {
        for engine in &mut engines {
            assert!(engine.as_mut().poll(&mut context).is_pending(), "the node does not stop");
        }
        requests.retain_mut(|request| request.as_mut().poll(&mut context).is_pending());
        time.passed.fetch_add(STEP.micros(), Ordering::Relaxed);
    }
    let counts = count_by_node(&store);
    let all: usize = counts.values().sum();
    assert!(all >= RUNS && counts.len() == 3, "{counts:?}");
    let (expected, deviation) = (all as f64 / 3.0, (all as f64 * 2.0 / 9.0).sqrt());
    let is_near = |count: &usize| (*count as f64 - expected).abs() <= DEVIATIONS * deviation;
    assert!(counts.values().all(is_near), "{counts:?}");
}

fn anna() -> Actor {
    Actor::Operator("anna".to_owned())
}

/// The successful runs of each node after the first seconds.
fn count_by_node(store: &MemoryStore) -> BTreeMap<NodeId, usize> {
    let mut counts = BTreeMap::new();
    for number in 0..JOBS {
        let query = RunQuery { job: Some(job_id(&format!("job-{number}"))), ..RunQuery::default() };
        for stored in at_once(store.page(&Query::Runs(query), 1_000)).expect("a page").records {
            let Record::Run(run) = stored.record else { continue };
            if run.state == State::Success && run.nominal >= START.plus(SETTLE) {
                *counts.entry(run.owner.as_ref().expect("it has run on a node").node).or_default() += 1;
            }
        }
    }
    counts
}
