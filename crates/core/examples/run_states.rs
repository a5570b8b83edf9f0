//! Prints the document about the states of a run.

fn main() {
    print!("{}", cronhold_core::run::diagram::document());
}
