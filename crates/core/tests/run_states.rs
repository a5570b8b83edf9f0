//! The committed document about the states of a run is up to date with the table.

#[test]
fn document_is_up_to_date() {
    let committed = include_str!("../../../docs/run-states.md");
    assert!(
        committed == cronhold_core::run::diagram::document(),
        "docs/run-states.md is out of date; regenerate it with \
         cargo run -p cronhold-core --example run_states > docs/run-states.md"
    );
}
