//! Cost of listing runs out of a million: the latest, of one job, in common and rare states, since a time, and by
//! number. Each query is repeated, and the median is printed.
//!
//! Prints one table. Arguments: number of runs (1,000,000) and of jobs (1,000).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant as Moment};

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Actor, Record, RecordVersion, ResolvedProgram, Run, Transition};
use cronhold_core::{JobId, JobUid, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::{Query, RunQuery, Store, Unit};
use cronhold_store_sqlite::{Options, SqliteStore};

const RUNS: usize = 1_000_000;
const JOBS: usize = 1_000;
const UNITS_A_BATCH: usize = 1_000;
const PAGE: usize = 50;
const ROUNDS: usize = 21;
const START: Instant = Instant::from_secs(1_700_000_000);

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let (runs, jobs) = (numbers.next().unwrap_or(RUNS), numbers.next().unwrap_or(JOBS));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("pages-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let store = filled(&folder.join("bench.db"), runs, jobs);
    println!("{runs} runs of {jobs} jobs");
    for (name, query, limit) in questions(runs, jobs) {
        let query = Query::Runs(query);
        let mut took: Vec<Duration> = Vec::new();
        let mut found = 0;
        for _ in 0..ROUNDS {
            let asked = now();
            found = block_on(store.page(&query, limit)).expect("it can be read").records.len();
            took.push(asked.elapsed());
        }
        took.sort();
        println!("{name:<40} {:>9.2} ms, {found} runs", took[ROUNDS / 2].as_secs_f64() * 1e3);
    }
    drop(store);
    fs::remove_dir_all(&folder).expect("the directory is removed");
}

fn questions(runs: usize, jobs: usize) -> Vec<(&'static str, RunQuery, usize)> {
    let all = RunQuery::default;
    let job = Some(job(jobs / 2));
    let middle = Some(nominal(runs / 2));
    let before = Some(RunId::from_random(nominal(runs / 2), [0; 10]));
    let rare = vec![State::Error];
    vec![
        ("the latest", all(), PAGE),
        ("from the middle on", RunQuery { before, ..all() }, PAGE),
        ("since the middle", RunQuery { since: middle, ..all() }, PAGE),
        ("of a job", RunQuery { job: job.clone(), ..all() }, PAGE),
        ("the latest of a job", RunQuery { job: job.clone(), ..all() }, 1),
        ("the first of a job by its number", RunQuery { job: job.clone(), number: Some(RunNumber(1)), ..all() }, 1),
        ("most: success", RunQuery { states: vec![State::Success], ..all() }, PAGE),
        ("few: error", RunQuery { states: rare.clone(), ..all() }, PAGE),
        ("few from the middle on", RunQuery { states: rare.clone(), before, ..all() }, PAGE),
        ("none: waiting", RunQuery { states: vec![State::Waiting], ..all() }, PAGE),
        (
            "few, some, and running",
            RunQuery { states: vec![State::Error, State::Failure, State::Running], ..all() },
            PAGE,
        ),
        ("few of a job", RunQuery { job: job.clone(), states: rare, ..all() }, PAGE),
        ("some of a job", RunQuery { job: job.clone(), states: vec![State::Failure], ..all() }, PAGE),
        ("running ones of a job", RunQuery { job, states: vec![State::Running], ..all() }, PAGE),
    ]
}

/// A store with runs, of which one in a hundred failed, one in ten thousand is in error, and the last hundred are
/// running.
fn filled(path: &Path, runs: usize, jobs: usize) -> SqliteStore {
    let clock = Arc::new(|| START);
    let options = Options { clock, zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
    let store = SqliteStore::open(path, options).expect("a store");
    let mut unit = 0;
    for first in (0..runs).step_by(UNITS_A_BATCH) {
        let units = (first..(first + UNITS_A_BATCH).min(runs)).map(|index| {
            unit += 1;
            let record = Record::Run(Arc::new(run(index, runs, jobs)));
            let compare = vec![(record.key(), None)];
            let version = RecordVersion::new(1, unit);
            Unit { version, compare, changes: vec![RecordChange::Put(record)], take: Vec::new(), free: Vec::new() }
        });
        let results = block_on(store.commit(units.collect()));
        assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
    }
    store
}

fn run(index: usize, runs: usize, jobs: usize) -> Run {
    let state = match index {
        _ if index + 100 >= runs => State::Running,
        _ if index.is_multiple_of(9_973) => State::Error,
        _ if index.is_multiple_of(97) => State::Failure,
        _ => State::Success,
    };
    let (at, uid) = (nominal(index), JobUid::from_bits(7));
    let entered = |state| Transition::entered(at, state, Actor::Schedule);
    let number = RunNumber((index / jobs + 1) as u64);
    Run {
        state,
        work: Some(ResolvedProgram::Noop(Span::ZERO)),
        log: [State::Waiting, State::Starting, state].map(entered).to_vec(),
        ..Run::blank(RunId::from_key(at, &index.to_string()), number, job(index % jobs), uid, at)
    }
}

fn job(index: usize) -> JobId {
    JobId::parse(&format!("reports/prices-{index}")).expect("an id")
}

/// Nominal times at ten runs per second.
fn nominal(index: usize) -> Instant {
    START.plus(Span::from_millis(100 * index as u64))
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Moment {
    Moment::now()
}
