//! `cronhold explain`.

use super::transcript;

#[test]
fn words() {
    let text = transcript(&[
        &["explain", "0 18 * * Mon-Fri", "--after", "2026-01-01"],
        &["explain", "0 */2 * * *", "--timezone", "Europe/Berlin", "--after", "2026-01-01"],
        &["explain", "{daily: ['09:00', '17:30'], calendar: Mon-Fri, calendar_shift: 1}", "--after", "2026-01-01"],
        &["explain", "continuously", "--after", "2026-01-01"],
        &["explain", "0 18 * * Mon-Fri", "--after", "2026-01-01", "-o", "json"],
        &["explain", "soonish"],
    ]);
    insta::assert_snapshot!(text);
}
