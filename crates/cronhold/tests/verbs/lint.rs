//! `cronhold lint`.

use super::transcript;

#[test]
fn warnings() {
    let text = transcript(&[
        &["lint", "30 2 * * *", "--timezone", "Europe/Berlin", "--after", "2026-01-01"],
        &["lint", "0 0 13 * Fri", "--after", "2026-01-01", "--strict"],
        &["lint", "*/7 * * * *", "--median-run", "10m", "--after", "2026-01-01"],
        &["lint", "0 18 * * *", "--strict"],
        &["lint", "0 0 12 * * *", "-o", "json"],
        &["lint", "examples/jobs", "--after", "2026-01-01"],
        &["lint", "0 18 * * *", "--median-run", "long"],
    ]);
    insta::assert_snapshot!(text);
}
