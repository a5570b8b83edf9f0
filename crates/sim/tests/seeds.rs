//! Many seeds, none of which may break a promise. A seed that fails is played again by `cargo run -p sim -- SEED`.

use std::ops::Range;

use sim::{Settings, play, world};

#[track_caller]
fn pass(seeds: Range<u64>, nodes: usize) {
    let world = world();
    let mut launches = 0;
    let mut failed = Vec::new();
    for seed in seeds.clone() {
        let showing = play(seed, Settings { nodes, ..Settings::default() }, &world);
        launches += showing.tally.launches;
        failed.extend(showing.finding.map(|finding| format!("seed {seed} with {nodes} nodes: {finding}")));
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    // Without programs there would be nothing that could go wrong.
    assert!(launches > 10 * (seeds.end - seeds.start), "only {launches} programs");
}

#[test]
fn one_node_keeps_its_promises_in_the_first_seeds() {
    pass(1..501, 1);
}

#[test]
fn one_node_keeps_its_promises_in_the_next_seeds() {
    pass(501..1_001, 1);
}

#[test]
fn three_nodes_keep_their_promises_in_the_first_seeds() {
    pass(1..334, 3);
}

#[test]
fn three_nodes_keep_their_promises_in_the_next_seeds() {
    pass(334..667, 3);
}

#[test]
fn three_nodes_keep_their_promises_in_the_last_seeds() {
    pass(667..1_001, 3);
}
