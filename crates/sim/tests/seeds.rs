//! Fixed seeds, none of which may break a promise. `cargo run -p sim -- SEED` replays one that fails; `./dev fresh` tries
//! seeds that no test has tried.

use sim::{SimSettings, shrink, simulate, world};

/// Failed seeds whose workload is reduced to the smallest one that still fails.
const SHRUNKEN_MAX: usize = 1;

#[track_caller]
fn pass(seeds: impl Iterator<Item = u64>) {
    let world = world();
    let (mut launches, mut played) = (0, 0);
    let mut failed = Vec::new();
    for seed in seeds {
        let showing = simulate(seed, SimSettings::default(), &world);
        launches += showing.tally.launches;
        played += 1;
        let Some(finding) = showing.finding else { continue };
        failed.push(format!("seed {seed}: {finding}"));
        if failed.len() <= SHRUNKEN_MAX {
            let shrunk = shrink(seed, SimSettings::default(), &finding, &world);
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
