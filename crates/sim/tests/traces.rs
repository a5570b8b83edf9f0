//! A trace depends on its seed alone: it is identical byte for byte each time, whatever ran before.

use sim::{SimSettings, simulate, world};

fn trace(seed: u64, nodes: usize) -> String {
    simulate(seed, SimSettings { nodes, trace: true, ..SimSettings::default() }, &world()).trace.join("\n")
}

#[test]
fn same_seed_gives_the_same_trace() {
    for nodes in [1, 3] {
        let first: Vec<String> = (1..9).map(|seed| trace(seed, nodes)).collect();
        for (seed, first) in (1..9).zip(&first) {
            assert!(first.lines().count() > 50, "seed {seed} with {nodes} nodes has a short trace");
            assert!(*first == trace(seed, nodes), "seed {seed} with {nodes} nodes gives two traces");
        }
    }
}

#[test]
fn seeds_and_settings_change_the_trace() {
    let first = trace(1, 1);
    assert_ne!(first, trace(2, 1));
    assert_ne!(first, trace(1, 3));
    assert_eq!(
        trace(1, 3).lines().filter(|line| line.ends_with(" starts") && !line.contains("program")).count() / 3,
        1
    );
}

/// Seeds run without a trace in a search, and with one when they are examined.
#[test]
fn tracing_does_not_change_the_simulation() {
    let world = world();
    for seed in 1..20 {
        let settings = SimSettings { nodes: 3, ..SimSettings::default() };
        let untraced = simulate(seed, settings, &world);
        let traced = simulate(seed, SimSettings { trace: true, ..settings }, &world);
        assert!(untraced.trace.is_empty());
        assert_eq!(
            (untraced.lasted, untraced.steps, untraced.tally),
            (traced.lasted, traced.steps, traced.tally),
            "seed {seed}"
        );
    }
}
