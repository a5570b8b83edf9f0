//! A failing scenario is shrunk, and the result fails in the same way.

use sim::{DeliberateBug, SimSettings, shrink, simulate, simulate_cut, world};

#[test]
fn failing_scenario_is_shrunk() {
    let world = world();
    let settings = SimSettings { nodes: 3, bug: DeliberateBug::NoCompare, ..SimSettings::default() };
    let fails = |seed| simulate(seed, settings, &world).finding.map(|finding| (seed, finding));
    let (seed, found) = (1..50).find_map(fails).expect("a checker detects claims without compare");
    let shrunk = shrink(seed, settings, &found, &world);
    assert!(
        shrunk.result.events.len() * 2 < shrunk.events,
        "{} of {} are left",
        shrunk.result.events.len(),
        shrunk.events
    );
    let again = simulate_cut(seed, settings, &shrunk.cut, &world).finding.expect("it still fails");
    assert_eq!(again.checker, found.checker);
    assert_eq!(Some(again), shrunk.result.finding);
}
