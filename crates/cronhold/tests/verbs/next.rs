//! `cronhold next`.

use super::{Folder, cronhold, transcript};

#[test]
fn next_prints_tables() {
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
        &[
            "next",
            "{hour: 9, calendar: Mon-Fri - closing-days}",
            "--root",
            "examples/jobs",
            "--after",
            "2027-12-29",
            "-n",
            "4",
        ],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn next_prints_json() {
    let text = transcript(&[
        &["next", "CRON_TZ=Europe/Berlin 30 2 * * *", "--after", "2026-03-28T01:30:00Z", "-n", "2", "-o", "json"],
        &["next", "triggered", "-o", "json"],
        &["next", "[{cron: '0 6 * * *'}, {hour: 5}]", "--after", "2026-01-01", "-n", "3", "-o", "json"],
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn next_reports_invalid_schedules() {
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
fn next_answers_long_input_with_a_short_error() {
    for text in ["*".repeat(100_000), "1,".repeat(60_000), "{".repeat(100_000), "ä ".repeat(30_000)] {
        let shown = cronhold(&["next", &text]);
        assert!(shown.ends_with("exit 2\n"), "{}", &shown[..shown.len().min(500)]);
        assert!(shown.len() < 5_000, "{} bytes", shown.len());
    }
}

/// `H` and jitter depend on the id of the job, which does not follow from a file alone.
#[test]
fn next_needs_the_job_id_for_hashed_schedules() {
    let folder = Folder::new("ids")
        .put("jobs/reports/prices.yaml", "program: echo\nschedule: H H * * *\n")
        .put("jobs/reports/plain.yaml", "program: echo\nschedule: 0 18 * * *\n")
        .put("with/reports/prices.yaml", "program: echo\nschedule: {every: 1h, jitter: 5m}\n")
        .put("with/calendars/none.cal", "");
    let after = ["--after", "2026-01-01", "-n", "1"];
    let next = |args: &[&'static str]| [["next"].as_slice(), args, &after].concat();
    let commands = [
        next(&["jobs/reports/prices.yaml"]),
        next(&["jobs/reports/prices.yaml", "--root", "jobs"]),
        next(&["jobs/reports/prices.yaml", "--job", "reports/prices"]),
        next(&["jobs/reports/plain.yaml"]),
        next(&["with/reports/prices.yaml"]),
        next(&["H H * * *"]),
        next(&["H H * * *", "--job", "reports/prices"]),
        next(&["H H * * *", "--job", "reports//prices"]),
        next(&["jobs/reports/prices.yaml", "--root", "with"]),
        next(&["jobs/reports/prices.yaml", "--root", "jobz"]),
    ];
    let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
    insta::assert_snapshot!(folder.transcript(&commands));
}

#[test]
fn next_reports_invalid_calendars() {
    let folder = Folder::new("calendars")
        .put("jobs/needs.yaml", "program: echo\nschedule: {daily: '10:00', calendar: first}\n")
        .put("jobs/needs-none.yaml", "program: echo\nschedule: {daily: '10:00', calendar: good}\n")
        .put("jobs/missing.yaml", "program: echo\nschedule:\n  - 0 1 * * *\n  - {daily: '10:00', calendar: goood}\n")
        .put("jobs/calendars/first.cal", "2026-13-01\n2026-01-32\n")
        .put("jobs/calendars/good.cal", "2026-05-01\n")
        .put("jobs/calendars/second.cal", "today\n")
        .put("good/days.cal", "2026-05-01\n");
    let text = folder.transcript(&[
        &["next", "jobs/needs.yaml"],
        &["next", "jobs/needs-none.yaml", "--after", "2026-01-01"],
        &["next", "{daily: '10:00', calendar: days}", "--root", "good", "--after", "2026-01-01"],
        &["next", "[{hour: 5, calendar: Mon}, {daily: {times: '10:00', calendar: day}}]", "--root", "good"],
        &["next", "jobs/missing.yaml"],
        &["next", "jobs"],
    ]);
    insta::assert_snapshot!(text);
}
