//! Fixed seeds, none of which may violate a guarantee. `cargo run -p sim -- SEED` reproduces a failure; `./dev fresh`
//! runs seeds that no test covers.

use sim::{SimSettings, shrink, simulate, world};

/// Number of failing seeds that are shrunk.
const SHRUNK_MAX: usize = 1;

#[track_caller]
fn guarantees_hold(seeds: impl Iterator<Item = u64>) {
    let world = world();
    let (mut launches, mut simulated) = (0, 0);
    let mut failed = Vec::new();
    for seed in seeds {
        let result = simulate(seed, SimSettings::default(), &world);
        launches += result.tally.launches;
        simulated += 1;
        let Some(finding) = result.finding else { continue };
        failed.push(format!("seed {seed}: {finding}"));
        if failed.len() <= SHRUNK_MAX {
            let shrunk = shrink(seed, SimSettings::default(), &finding, &world);
            failed.extend(shrunk.result.events.into_iter().map(|event| format!("    {event}")));
        }
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    // Without programs the checkers would have nothing to check.
    assert!(launches > 10 * simulated, "only {launches} programs in {simulated} seeds");
}

#[test]
fn guarantees_hold_for_seeds_1_to_300() {
    guarantees_hold(1..301);
}

#[test]
fn guarantees_hold_for_seeds_301_to_600() {
    guarantees_hold(301..601);
}

#[test]
fn guarantees_hold_for_seeds_601_to_900() {
    guarantees_hold(601..901);
}
