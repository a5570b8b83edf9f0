//! `cronhold next`.

use super::{cronhold, transcript};

#[test]
fn tables() {
    let text = transcript(&[
        &["next", "30 2 * * *", "--timezone", "Europe/Berlin", "--after", "2026-03-27T12:00:00Z", "-n", "3"],
        &["next", "{hour: 14, day: last}", "--after", "2026-01-31T14:00:00Z", "-n", "2"],
        &[
            "next",
            "{daily: '18:00', calendar: Mon-Fri, timezone: America/New_York}",
            "--after",
            "2026-11-13",
            "-n",
            "2",
        ],
        &["next", "{every: 15m, jitter: 5m}", "--after", "2026-01-01T00:00:00Z", "-n", "2", "--job", "sync"],
        &["next", "with 10m interval", "--after", "2026-01-01T00:00:00Z", "-n", "2"],
        &["next", "triggered", "--after", "2026-01-01"],
        &["next", "0 0 31 2 *", "--after", "2026-01-01"],
        &["next", "examples/jobs/backup/database.yaml", "--after", "2026-01-01", "-n", "2"],
        &["next", "examples/jobs/finance/books.yaml", "--after", "2027-01-01", "-n", "2"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn json() {
    let text = transcript(&[
        &["next", "CRON_TZ=Europe/Berlin 30 2 * * *", "--after", "2026-03-28T01:30:00Z", "-n", "2", "-o", "json"],
        &["next", "triggered", "-o", "json"],
        &["next", "[{cron: '0 6 * * *'}, {hour: 5}]", "--after", "2026-01-01", "-n", "3", "-o", "json"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn mistakes() {
    let text = transcript(&[
        &["next", "0 25 * * *"],
        &["next", "0 0 * * Mno"],
        &["next", "@dialy"],
        &["next", ""],
        &["next", "* * *"],
        &["next", "{hour: 14, dya: last}"],
        &["next", "{daily: '25:00'}"],
        &["next", "0 0 * * *", "--timezone", "Berlin"],
        &["next", "CRON_TZ=Mars/Olympus 0 0 * * *"],
        &["next", "0 0 * * *", "--after", "soon"],
        &["next", "0 0 * * *", "-n", "0"],
        &["next", "{daily: '10:00', calendar: holidays}"],
        &["next", "jobs/nothing.yaml"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn input_of_any_length_gets_a_short_answer() {
    for text in ["*".repeat(100_000), "1,".repeat(60_000), "{".repeat(100_000), "ä ".repeat(30_000)] {
        let shown = cronhold(&["next", &text]);
        assert!(shown.ends_with("exit 2\n"), "{}", &shown[..shown.len().min(500)]);
        assert!(shown.len() < 5_000, "{} bytes", shown.len());
    }
}
