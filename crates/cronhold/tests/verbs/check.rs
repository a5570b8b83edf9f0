//! `cronhold check`.

use super::transcript;

#[test]
fn directories() {
    let text = transcript(&[
        &["check", "examples/jobs"],
        &["check", "crates/cronhold/tests/verbs/bad"],
        &["check", "crates/cronhold/tests/verbs/bad", "-o", "json"],
        &["check", "crates/nowhere"],
    ]);
    insta::assert_snapshot!(text);
}
