//! `cronhold explain`.

use super::{Folder, transcript};

#[test]
fn explain_describes_schedules() {
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

#[test]
fn explain_describes_all_schedules_of_a_job_file() {
    let folder = Folder::new("explain").put(
        "feeds/prices.yaml",
        "program: echo\nparams: [region]\nschedule:\n\
         - {name: late, cron: H 18 * * *, args: {region: us}, stop: {after: 2h}}\n\
         - {every: 15m, args: {region: eu}, enabled: false, stop: {at: '20:00'}}\n",
    );
    let text = folder.transcript(&[
        &["explain", "feeds/prices.yaml", "--after", "2026-01-01"],
        &["explain", "feeds/prices.yaml", "--root", ".", "--after", "2026-01-01", "-o", "json"],
    ]);
    insta::assert_snapshot!(text);
}
