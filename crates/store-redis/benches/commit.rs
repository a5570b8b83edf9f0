//! Cost of a no-op run on Redis: batches of 256 units, half of which start a run and half of which end one, for 1,000
//! jobs, on a dedicated server on the same machine. A plain PING is measured for comparison.
//!
//! Prints one table. Arguments: number of batches (400), and how many of them are in flight at the same time (3).

#[path = "../../store-sqlite/benches/commit/load.rs"]
mod load;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant as Moment};

use cronhold_schedule::ZoneRegistry;
use cronhold_store::conformance::block_on;
use cronhold_store::{Pending, Store, UnitReceipt, UnitRefusal};
use cronhold_store_redis::testing::RedisServer;
use cronhold_store_redis::{Options, RedisStore, RedisUrl};
use load::{JOBS, Load};

const UNITS_A_BATCH: usize = 256;
const BATCHES: usize = 400;
const DEPTH: usize = 3;
const TIMES: u32 = 2_000;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let (batches, depth) = (numbers.next().unwrap_or(BATCHES), numbers.next().unwrap_or(DEPTH));
    let server = RedisServer::start();
    let url = RedisUrl::parse(&server.url()).expect("a URL");
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    let store = RedisStore::open(&url, options).expect("a store");
    let writer = block_on(store.enroll()).expect("a writer").0;

    let begun = now();
    for _ in 0..TIMES {
        block_on(store.time()).expect("a time");
    }
    println!("an empty round trip                    {:>9.1} µs", micros(begun.elapsed()) / f64::from(TIMES));

    let mut load = Load::new(writer);
    check(&block_on(store.commit((0..JOBS).map(|index| load.put_job(index)).collect())));
    let half = UNITS_A_BATCH / 2;
    check(&block_on(store.commit((0..half).map(|_| load.start()).collect())));

    let (before, begun) = (Used::of(&server), now());
    let (mut building, mut encoding) = (Duration::ZERO, Duration::ZERO);
    let mut on_their_way: VecDeque<Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>>> = VecDeque::new();
    for _ in 0..batches {
        let asked = now();
        let units = (0..UNITS_A_BATCH).map(|index| if index % 2 == 0 { load.start() } else { load.end() }).collect();
        building += asked.elapsed();
        let asked = now();
        let mut commit = store.commit(units);
        // The first poll encodes and sends the commit.
        assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        encoding += asked.elapsed();
        on_their_way.push_back(commit);
        if on_their_way.len() >= depth {
            check(&block_on(on_their_way.pop_front().expect("there is one")));
        }
    }
    on_their_way.into_iter().for_each(|commit| check(&block_on(commit)));
    let (took, used) = (begun.elapsed(), Used::of(&server).minus(&before));

    let (units, runs) = ((batches * UNITS_A_BATCH) as f64, (batches * half) as f64);
    println!("runs                                   {runs:>9.0}, {:.0} a second", runs / took.as_secs_f64());
    println!("wall clock                             {:>9.1} µs a unit", micros(took) / units);
    println!("the server on the processor            {:>9.1} µs a unit", micros(used.server) / units);
    println!("the line's thread on the processor     {:>9.1} µs a unit", micros(used.line) / units);
    println!("making the units                       {:>9.1} µs a unit", micros(building) / units);
    println!("encoding them                          {:>9.1} µs a unit", micros(encoding) / units);
    println!(
        "round trips                            {:>9}, {:.3} a run",
        used.calls(true),
        used.calls(true) as f64 / runs
    );
    println!(
        "commands inside scripts                {:>9}, {:.2} a unit",
        used.calls(false),
        used.calls(false) as f64 / units
    );
    let mut most: Vec<(&String, &u64)> = used.commands.iter().filter(|(_, count)| **count > 0).collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    most.iter().take(8).for_each(|(name, count)| println!("    {name:<34} {count:>9}"));
}

/// Resources used so far.
struct Used {
    /// Number of calls of each command, by the client or by a script.
    commands: BTreeMap<String, u64>,
    /// CPU time of the server.
    server: Duration,
    /// CPU time of the connection thread.
    line: Duration,
}

impl Used {
    fn of(server: &RedisServer) -> Self {
        let lines = server.cli(&["INFO", "commandstats"]);
        let commands = lines.lines().filter_map(|line| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
        });
        let told = server.cli(&["INFO", "cpu"]);
        let seconds = |field: &str| {
            let found = told.lines().find_map(|line| line.strip_prefix(field)?.trim().parse().ok());
            Duration::from_secs_f64(found.unwrap_or(0.0))
        };
        let server = seconds("used_cpu_user:") + seconds("used_cpu_sys:");
        Self { commands: commands.collect(), server, line: line_time() }
    }

    fn minus(mut self, before: &Self) -> Self {
        for (name, count) in &mut self.commands {
            *count -= before.commands.get(name).unwrap_or(&0);
        }
        self.server -= before.server;
        self.line -= before.line;
        self
    }

    /// Calls of scripts, or of all other commands.
    fn calls(&self, of_scripts: bool) -> u64 {
        self.commands
            .iter()
            .filter(|(name, _)| (name.as_str() == "evalsha") == of_scripts)
            .map(|(_, count)| count)
            .sum()
    }
}

/// CPU time of the connection thread.
fn line_time() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mine = tasks
        .map(|task| task.path())
        .filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "redis"));
    let nanos = mine.filter_map(|task| fs::read_to_string(task.join("schedstat")).ok());
    let nanos = nanos.filter_map(|text| text.split(' ').next().and_then(|number| number.parse().ok()));
    nanos.map(Duration::from_nanos).sum()
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
