//! Many seeds, none of which may break a promise. A seed that fails is played again by `cargo run -p sim -- SEED`.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use sim::{Settings, play, shrink, world};

/// Fresh seeds that each run of the tests plays, and seeds of which the smallest workload that fails is looked for.
const FRESH: u64 = 40;
const SHRUNKEN_MAX: usize = 1;

#[track_caller]
fn pass(seeds: impl Iterator<Item = u64>) {
    let world = world();
    let (mut launches, mut played) = (0, 0);
    let mut failed = Vec::new();
    for seed in seeds {
        let showing = play(seed, Settings::default(), &world);
        launches += showing.tally.launches;
        played += 1;
        let Some(finding) = showing.finding else { continue };
        failed.push(format!("seed {seed}: {finding}"));
        if failed.len() <= SHRUNKEN_MAX {
            let shrunk = shrink(seed, Settings::default(), &finding, &world);
            failed.extend(shrunk.showing.acts.into_iter().map(|act| format!("    {act}")));
        }
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    // Without programs there would be nothing that could go wrong.
    assert!(launches > 10 * played, "only {launches} programs in {played} seeds");
}

#[test]
fn promises_are_kept_in_the_first_seeds() {
    pass(1..301);
}

#[test]
fn promises_are_kept_in_the_next_seeds() {
    pass(301..601);
}

#[test]
fn promises_are_kept_in_the_last_seeds() {
    pass(601..901);
}

/// Seeds that nobody has played before. One that fails is told, and belongs to the regressions then.
#[test]
fn promises_are_kept_in_fresh_seeds() {
    let first = RandomState::new().hash_one("fresh seeds") % 1_000_000_000_000;
    pass(first..first + FRESH);
}
