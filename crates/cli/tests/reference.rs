//! The committed reference of the command line is the one that the definitions give.

use cronhold_cli::{Cli, reference};

#[test]
fn reference_is_current() {
    let committed = include_str!("../../../docs/reference/cli.md");
    assert!(reference(&mut Cli::definition()) == committed, "docs/reference/cli.md is out of date: run ./dev docs");
}
