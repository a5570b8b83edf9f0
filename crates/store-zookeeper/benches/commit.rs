//! Cost of a no-op run on ZooKeeper: batches of 256 units, half of which start a run and half of which end one, for 1,000
//! jobs, on one dedicated server and on an ensemble of three, on the same machine.
//!
//! Prints one table for each. Arguments: number of batches (100), and how many of them are prepared ahead (3).

#[path = "../../store-sqlite/benches/commit/load.rs"]
mod load;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant as Moment};

use cronhold_schedule::ZoneRegistry;
use cronhold_store::conformance::block_on;
use cronhold_store::{Pending, Query, Store, UnitReceipt, UnitRefusal};
use cronhold_store_zookeeper::testing::{ZooKeeperEnsemble, ZooKeeperServer};
use cronhold_store_zookeeper::{ZooKeeperOptions, ZooKeeperStore, ZooKeeperUrl};
use load::{JOBS, Load};

const UNITS_A_BATCH: usize = 256;
const BATCHES: usize = 100;
const DEPTH: usize = 3;
const TIMES: u32 = 500;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let (batches, depth) = (numbers.next().unwrap_or(BATCHES), numbers.next().unwrap_or(DEPTH));
    let server = ZooKeeperServer::start();
    println!("one server");
    measure(&server.url("/bench"), batches, depth);
    drop(server);
    let ensemble = ZooKeeperEnsemble::start();
    println!("an ensemble of three");
    measure(&ensemble.url("/bench"), batches, depth);
}

fn open(url: &str) -> ZooKeeperStore {
    let url = ZooKeeperUrl::parse(url, None).expect("a URL");
    let options = ZooKeeperOptions { zones: Arc::new(ZoneRegistry::bundled()), memory: None };
    ZooKeeperStore::open(&url, options).expect("a store")
}

fn measure(url: &str, batches: usize, depth: usize) {
    let store = open(url);
    let writer = block_on(store.enroll()).expect("a writer").0;
    let begun = now();
    for _ in 0..TIMES {
        block_on(store.time()).expect("a time");
    }
    println!("    a request for the time             {:>9.1} µs", micros(begun.elapsed()) / f64::from(TIMES));

    let mut load = Load::new(writer);
    check(&block_on(store.commit((0..JOBS).map(|index| load.put_job(index)).collect())));
    // The mirror follows from now on, as in a node.
    block_on(store.page(&Query::Jobs { after: None }, 1)).expect("a page");
    let half = UNITS_A_BATCH / 2;
    check(&block_on(store.commit((0..half).map(|_| load.start()).collect())));

    let begun = now();
    let mut in_flight: VecDeque<Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>>> = VecDeque::new();
    for _ in 0..batches {
        let units = (0..UNITS_A_BATCH).map(|index| if index % 2 == 0 { load.start() } else { load.end() }).collect();
        let mut commit = store.commit(units);
        // The first poll sends the commit.
        assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        in_flight.push_back(commit);
        if in_flight.len() >= depth {
            check(&block_on(in_flight.pop_front().expect("there is one")));
        }
    }
    in_flight.into_iter().for_each(|commit| check(&block_on(commit)));
    let took = begun.elapsed();
    let (units, runs) = ((batches * UNITS_A_BATCH) as f64, (batches * half) as f64);
    println!("    runs                               {runs:>9.0}, {:.0} a second", runs / took.as_secs_f64());
    println!("    wall clock                         {:>9.1} µs a unit", micros(took) / units);

    let begun = now();
    let starts = (0..JOBS).map(|_| load.start()).collect();
    check(&block_on(store.commit(starts)));
    println!("    1,000 claims in one commit         {:>9.1} ms", micros(begun.elapsed()) / 1e3);

    let begun = now();
    let page = block_on(open(url).page(&Query::Unfinished { node: None, after: None }, 10)).expect("a page");
    println!("    loading {:>7.0} runs into a mirror {:>9.1} ms", runs, micros(begun.elapsed()) / 1e3);
    assert_eq!(page.records.len(), 10);
}

fn check(results: &[Result<UnitReceipt, UnitRefusal>]) {
    assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Moment {
    Moment::now()
}
