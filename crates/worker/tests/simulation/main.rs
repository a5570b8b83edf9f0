//! A simulation of workers and clients of tasks: each seed is one history, in virtual time, on a store that loses
//! requests and replies, with workers that crash and leases that expire. After each change the promises are checked.
//!
//! In reading order: [`stage`] lets one actor run at a time; [`faulty`] loses requests and replies; [`stories`] has the
//! workers; [`actors`] has the processes; [`promises`] has what must hold; [`run`] plays one seed.

mod actors;
mod faulty;
mod promises;
mod run;
mod stage;
mod stories;

use std::ops::Range;

use crate::faulty::StoreMistake;
use crate::run::{SeedReport, play};

/// Seeds that every test run plays.
const SEEDS: u64 = 200;
/// Seeds within which a mistake has to be found.
const MISTAKE_SEEDS: u64 = 60;
/// The environment variable with the first of 1,000 further seeds.
const FRESH: &str = "CRONHOLD_TASK_SEED";
const FRESH_SEEDS: u64 = 1_000;

/// Plays seeds, and returns what they had in total.
fn play_all(seeds: impl Iterator<Item = u64>) -> SeedReport {
    let mut total = SeedReport::default();
    for seed in seeds {
        match play(seed, None) {
            Ok(report) => total.add(&report),
            Err(finding) => panic!("seed {seed}: {finding}"),
        }
    }
    total
}

/// The seeds to play: those that the environment requests, or always the same ones.
fn seeds() -> Range<u64> {
    #[expect(clippy::disallowed_methods, reason = "`./dev fresh` names the seeds")]
    let first = std::env::var_os(FRESH).and_then(|text| text.to_str()?.parse().ok());
    first.map_or(0..SEEDS, |first: u64| first..first + FRESH_SEEDS)
}

/// Every item is there once, no task waits for nothing, and no step takes effect twice.
#[test]
fn items_are_conserved_in_every_history() {
    let total = play_all(seeds());
    let SeedReport { steps, lost, crashes, faults, items } = total;
    let is_eventful = [steps, lost, crashes, faults, items].iter().all(|count| *count > SEEDS);
    assert!(is_eventful, "the histories have something to find: {total:?}");
}

#[test]
fn seed_determines_the_history() {
    let trace = |seed| play(seed, None).map(|report| format!("{report:?}"));
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
}

/// The checks find what they are for: each of these mistakes of a store or a worker breaks a promise.
#[test]
fn mistakes_are_found() {
    for mistake in StoreMistake::ALL {
        let found = (0..MISTAKE_SEEDS).find_map(|seed| play(seed, Some(mistake)).err());
        let Some(finding) = found else { panic!("{mistake:?} is not found") };
        let expected = mistake.breaks();
        assert!(expected.iter().any(|part| finding.contains(part)), "{mistake:?}: {finding}");
    }
}
