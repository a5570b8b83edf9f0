//! Checkers that never find anything prove nothing. Here the store is wrong on purpose, in three ways that schedulers
//! have been wrong in before, and each has to be noticed soon.

use std::collections::BTreeSet;

use sim::{Settings, Variant, play, world};

/// What checkers find in the first ten seeds.
fn caught(variant: Variant, nodes: usize) -> BTreeSet<&'static str> {
    let world = world();
    let settings = Settings { nodes, variant, ..Settings::default() };
    (1..=10).filter_map(|seed| play(seed, settings, &world).finding).map(|finding| finding.checker).collect()
}

#[test]
fn claims_without_compare_are_noticed_within_ten_seeds() {
    let caught = caught(Variant::Blind, 3);
    assert!(caught.contains("one first start for each occurrence"), "{caught:?}");
}

#[test]
fn effects_before_the_commit_are_noticed_within_ten_seeds() {
    let caught = caught(Variant::Hasty, 3);
    assert!(caught.contains("one first start for each occurrence"), "{caught:?}");
}

#[test]
fn a_node_that_does_not_recover_is_noticed_within_ten_seeds() {
    let caught = caught(Variant::Forgetful, 1);
    assert!(caught.contains("one outcome for each occurrence"), "{caught:?}");
}
