//! The committed document about the states of a run says what the table says.

#[test]
fn document_is_up_to_date() {
    let committed = include_str!("../../../docs/run-states.md");
    assert!(
        committed == cronhold_core::run::diagram::document(),
        "docs/run-states.md is not what the run table says: \
         cargo run -p cronhold-core --example run_states > docs/run-states.md"
    );
}
