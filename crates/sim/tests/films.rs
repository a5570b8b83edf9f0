//! A film follows from its seed alone: byte for byte the same each time, whatever was played before.

use sim::{SimSettings, simulate, world};

fn trace(seed: u64, nodes: usize) -> String {
    simulate(seed, SimSettings { nodes, trace: true, ..SimSettings::default() }, &world()).trace.join("\n")
}

#[test]
fn a_seed_gives_the_same_film_each_time() {
    for nodes in [1, 3] {
        let first: Vec<String> = (1..9).map(|seed| trace(seed, nodes)).collect();
        for (seed, first) in (1..9).zip(&first) {
            assert!(first.lines().count() > 50, "seed {seed} with {nodes} nodes shows nothing");
            assert!(*first == trace(seed, nodes), "seed {seed} with {nodes} nodes gives two films");
        }
    }
}

#[test]
fn seeds_and_settings_make_a_difference() {
    let first = trace(1, 1);
    assert_ne!(first, trace(2, 1));
    assert_ne!(first, trace(1, 3));
    assert_eq!(
        trace(1, 3).lines().filter(|line| line.ends_with(" starts") && !line.contains("program")).count() / 3,
        1
    );
}

/// A seed is played without a film among many, and with one when somebody looks at it.
#[test]
fn looking_changes_nothing() {
    let world = world();
    for seed in 1..20 {
        let settings = SimSettings { nodes: 3, ..SimSettings::default() };
        let unseen = simulate(seed, settings, &world);
        let seen = simulate(seed, SimSettings { trace: true, ..settings }, &world);
        assert!(unseen.trace.is_empty());
        assert_eq!((unseen.lasted, unseen.steps, unseen.tally), (seen.lasted, seen.steps, seen.tally), "seed {seed}");
    }
}
