//! Schedules and their warnings, as of 15 January 2026.

use super::*;
use crate::calendar::{CalendarExpr, CalendarSet};
use crate::civil::TimeOfDay;
use crate::cron::FieldsExpr;
use crate::schedule::CompileContext;
use crate::spec::{DailyInterval, DayShift, GapPolicy, TimeBound, WindowEdge};
use crate::zone::{Zone, ZoneRegistry};

fn all(spec: &ScheduleSpec, past: JobHistory) -> Vec<LintWarning> {
    let (zones, zone, calendars) = (ZoneRegistry::bundled(), Zone::utc(), CalendarSet::new());
    let around = CompileContext { zones: &zones, zone: &zone, calendars: &calendars, job: "job" };
    let schedule = Schedule::compile(spec, around).expect("compiles");
    let now = Instant::parse("2026-01-15T12:00:00Z").expect("valid");
    lint(spec, &schedule, "job", now, past)
}

fn warnings(spec: &ScheduleSpec) -> Vec<String> {
    let line = |warning: LintWarning| format!("{}: {}", warning.lint.name(), warning.message);
    all(spec, JobHistory::default()).into_iter().map(line).collect()
}

fn parsed(text: &str) -> ScheduleSpec {
    ScheduleSpec::parse(text).expect(text)
}

#[test]
fn warns_of_days_and_steps() {
    for (text, expected) in [
        ("0 18 * * 1-5", vec![]),
        ("*/15 * * * *", vec![]),
        (
            "0 0 12 * * *",
            vec![
                "six-fields: six fields are read as minute hour day month weekday year: At 00:00 on the 12th of the month",
            ],
        ),
        (
            "* * 13 * 5",
            vec![
                "either-day: day of month and day of week are both given: it runs when either matches, next on 2026-01-16, 2026-01-23, 2026-01-30",
            ],
        ),
        (
            "*/7 * * * *",
            vec!["uneven-step: every 7 minutes does not divide 60: after minute 56 comes minute 0, 4 minutes later"],
        ),
        ("*/7 3 * * *", vec![]),
        (
            "*/59 * * * *",
            vec!["uneven-step: every 59 minutes does not divide 60: after minute 59 comes minute 0, 1 minute later"],
        ),
        ("0,10 * * * *", vec![]),
        (
            "0 */13 * * *",
            vec!["uneven-step: every 13 hours does not divide 24: after hour 13 comes hour 0, 11 hours later"],
        ),
        // A list of hours is not a step, though its values are the same.
        ("0 0,13 * * *", vec![]),
        ("0 0,9,18 * * *", vec![]),
        (
            "0 0 */2 * *",
            vec!["uneven-step: every 2 days restarts each month: after 2026-01-31 comes 2026-02-01, 1 day later"],
        ),
        // Even except in leap years, and no leap year is near.
        ("0 0 */2 2,3 *", vec![]),
        ("0 0 1,11,21 * *", vec![]),
        (
            "0 0 1 */5 *",
            vec!["uneven-step: every 5 months does not divide 12: after November comes January, 2 months later"],
        ),
        ("0 0 1 1,8 *", vec![]),
        (
            "0 0 31 * *",
            vec![
                "short-months: February, April, June, September and November have no 31st and are skipped, next on 2026-01-31",
            ],
        ),
        ("0 0 31 12 *", vec![]),
        ("0 0 31 1,3 *", vec![]),
        ("0 0 31 2,12 *", vec!["short-months: February has no 31st and is skipped, next on 2026-12-31"]),
        ("0 0 15,31 * *", vec![]),
        (
            "0 0 29 2 *",
            vec!["short-months: February has a 29th in leap years only and is skipped in others, next on 2028-02-29"],
        ),
        ("triggered", vec![]),
    ] {
        assert_eq!(warnings(&parsed(text)), expected, "{text}");
    }
}

#[test]
fn hints_keep_the_other_fields() {
    for (text, hint) in [
        ("*/7 * * * *", "for a steady rhythm write `@every 7m`"),
        ("*/7 9-17 * * 1-5", "for equal distances choose a step that divides 60, such as 6 or 10"),
        ("0 */5 * * *", "for a steady rhythm write `@every 5h`"),
        ("0 */5 * * 1-5", "for equal distances choose a step that divides 24, such as 4 or 6"),
        ("0 */13 * * 1-5", "for equal distances choose a step that divides 24, such as 12"),
        ("0 0 */2 * *", "for a steady rhythm write `@every 2d`, which counts from 1970-01-01 in UTC"),
        ("0 0 */2 1-3 *", "to keep days apart name them, such as `1,11,21`"),
    ] {
        let hints: Vec<String> = all(&parsed(text), JobHistory::default()).into_iter().map(|one| one.hint).collect();
        assert_eq!(hints, [hint], "{text}");
    }
}

const GAP: &str = "2026-03-29 and 2027-03-28 in Europe/Berlin (the clock goes from 02:00 to 03:00)";
const FOLD: &str = "2026-10-25 and 2027-10-31 in Europe/Berlin (the clock goes from 03:00 back to 02:00)";

#[test]
fn warns_of_clock_changes() {
    let night = || parsed("CRON_TZ=Europe/Berlin 30 2 * * *");
    let bound = |text| Some(TimeBound::parse(text).expect(text));
    let gap = format!("gap: 02:30 does not exist on {GAP}: it runs once at 03:00 instead");
    let fold = format!("fold: 02:30 comes twice on {FOLD}: it runs the first time only");
    let both = [gap.clone(), fold.clone()];
    for (spec, expected) in [
        (night(), &both[..]),
        // Hours that are listed are fixed times, even when none is missing.
        (parsed("CRON_TZ=Europe/Berlin 30 0-23 * * *"), &both),
        (parsed("CRON_TZ=Europe/Berlin 30 * * * *"), &[]),
        (parsed("CRON_TZ=Europe/Berlin 30 2 1 * *"), &[]),
        (ScheduleSpec { end: bound("2026-02-01"), ..night() }, &[]),
        (ScheduleSpec { end: bound("2026-03-29"), ..night() }, &[gap.replace(" and 2027-03-28", "")]),
        (
            ScheduleSpec { start: bound("2026-03-30"), end: bound("2026-10-25T02:30"), ..night() },
            &[fold.replace(" and 2027-10-31", "")],
        ),
        (
            ScheduleSpec { gap: Some(GapPolicy::Skip), end: bound("2026-09-01"), ..night() },
            &[gap.replace(" and 2027-03-28", "").replace("runs once at 03:00 instead", "does not run then")],
        ),
    ] {
        assert_eq!(warnings(&spec), expected, "{spec}");
    }
}

#[test]
fn warns_of_windows_at_clock_changes() {
    let edge =
        |hour: u32, minute: u32| WindowEdge { time: TimeOfDay(hour * 3600 + minute * 60), shift: DayShift::default() };
    let window = |from, until| {
        let timing = Timing::DailyInterval(DailyInterval { from, until, interval: Span::from_secs(900) });
        ScheduleSpec { zone: Some("Europe/Berlin".to_owned()), ..ScheduleSpec::new(timing) }
    };
    let begins = || window(edge(2, 30), edge(6, 0));
    let on = |text| Some(CalendarExpr::parse(text).expect(text));
    let gap = format!("gap: its window begins at 02:30, which does not exist on {GAP}: it begins at 03:00 instead");
    let fold = format!("fold: its window begins at 02:30, which comes twice on {FOLD}: it begins the first time");
    for (spec, expected) in [
        (begins(), vec![gap.clone(), fold.clone()]),
        (
            ScheduleSpec { gap: Some(GapPolicy::Skip), ..begins() },
            vec![gap.replace("it begins at 03:00 instead", "there is no window then"), fold.clone()],
        ),
        // Clocks change on Sundays.
        (ScheduleSpec { calendar: on("Sun"), ..begins() }, vec![gap, fold]),
        (ScheduleSpec { calendar: on("Mon-Fri"), ..begins() }, vec![]),
        (window(edge(9, 0), edge(17, 0)), vec![]),
        (
            window(edge(1, 0), edge(2, 30)),
            vec![
                format!("gap: its window ends at 02:30, which does not exist on {GAP}: it ends at 03:00 instead"),
                format!("fold: its window ends at 02:30, which comes twice on {FOLD}: it ends the first time"),
            ],
        ),
    ] {
        assert_eq!(warnings(&spec), expected, "{spec}");
    }
}

#[test]
fn warns_of_schedules_that_have_ended() {
    let bound = |text| Some(TimeBound::parse(text).expect(text));
    let ended = "never: never fires again: its last occurrence was";
    for (spec, expected) in [
        (parsed("0 0 31 2 *"), "never: never fires: no date matches".to_owned()),
        (parsed("0 0 1 1 * 2020"), format!("{ended} 2020-01-01T00:00:00+00:00")),
        (ScheduleSpec { end: bound("2026-01-10"), ..parsed("@daily") }, format!("{ended} 2026-01-10T00:00:00+00:00")),
        // No ISO week 1 has a day in June, but lint does not search beyond the last known year.
        (
            ScheduleSpec::new(Timing::Fields(FieldsExpr::parse(&[("month", "6"), ("week", "1")]).expect("valid"))),
            "never: never fires before 2101: no date matches".to_owned(),
        ),
    ] {
        assert_eq!(warnings(&spec), [expected], "{spec}");
    }
}

#[test]
fn warns_of_misleading_zones() {
    for (zone, expected) in [
        ("EST", &["odd-zone: `EST` is 5 hours behind UTC all year, also in summer"][..]),
        ("Etc/GMT+5", &["odd-zone: `Etc/GMT+5` is behind UTC: the sign in these names is reversed"]),
        ("America/New_York", &[]),
        ("EST5EDT", &[]),
    ] {
        assert_eq!(warnings(&parsed(&format!("CRON_TZ={zone} 0 12 * * *"))), expected, "{zone}");
    }
}

#[test]
fn warns_when_runs_take_longer_than_the_interval() {
    let past = JobHistory { median_run: Some(Span::from_secs(700)) };
    let warnings = |text: &str| all(&parsed(text), past).into_iter().map(|one| one.message).collect::<Vec<_>>();
    assert_eq!(warnings("*/10 * * * *"), ["occurrences are 10m apart, but half of its runs take 11m40s or longer"]);
    assert!(warnings("0 * * * *").is_empty());
    assert!(warnings("with 1m interval").is_empty());
}

#[test]
fn hashed_fields_are_resolved_for_the_given_job() {
    let spec = parsed("H 3 * * * *");
    let message = all(&spec, JobHistory::default()).remove(0).message;
    assert!(message.ends_with(&spec.words("job")), "{message}");
    assert_ne!(spec.words("job"), spec.words(""), "the expression depends on the job");
}
