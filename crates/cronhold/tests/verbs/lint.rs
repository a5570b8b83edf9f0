//! `cronhold lint`.

use super::{Folder, transcript};

#[test]
fn lint_warns_about_schedules() {
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

/// An invalid file does not affect the others.
#[test]
fn lint_continues_after_an_invalid_file() {
    let folder = Folder::new("lint")
        .put("jobs/good.yaml", "program: echo\nschedule: 0 0 13 * Fri\n")
        .put("jobs/off.yaml", "program: echo\nschedule: {cron: 0 0 13 * Fri, enabled: false}\n")
        .put("jobs/bad.yaml", "progam: echo\n")
        .put("jobs/holiday.yaml", "program: echo\nschedule: {daily: '10:00', calendar: holidays}\n")
        .put("jobs/calendars/holidays.cal", "2026-13-01\n")
        .put("one/bad.yaml", "program: [\n");
    let text = folder.transcript(&[
        &["lint", "jobs", "--after", "2026-01-01"],
        &["lint", "jobs", "--after", "2026-01-01", "-o", "json"],
        &["lint", "one"],
        &["lint", "one", "--job", "bad"],
    ]);
    insta::assert_snapshot!(text);
}
