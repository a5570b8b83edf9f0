//! What fails is made smaller, and what is left fails in the same way.

use sim::{DeliberateBug, SimSettings, shrink, simulate, simulate_cut, world};

#[test]
fn a_workload_that_fails_is_made_smaller() {
    let world = world();
    let settings = SimSettings { nodes: 3, variant: DeliberateBug::Blind, ..SimSettings::default() };
    let fails = |seed| simulate(seed, settings, &world).finding.map(|finding| (seed, finding));
    let (seed, found) = (1..50).find_map(fails).expect("claims that are not compared are noticed");
    let shrunk = shrink(seed, settings, &found, &world);
    assert!(shrunk.showing.acts.len() * 2 < shrunk.acts, "{} of {} are left", shrunk.showing.acts.len(), shrunk.acts);
    let again = simulate_cut(seed, settings, &shrunk.cut, &world).finding.expect("it still fails");
    assert_eq!(again.checker, found.checker);
    assert_eq!(Some(again), shrunk.showing.finding);
}
