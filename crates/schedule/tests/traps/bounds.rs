//! Starts and ends: days, local times, and local times that are repeated or skipped.

use cronhold_schedule::{ScheduleSpec, TimeBound};

use crate::{check_spec, compile, instant, parse, shown};

fn within(text: &str, start: Option<&str>, end: Option<&str>) -> ScheduleSpec {
    let bound = |text: &str| TimeBound::parse(text).unwrap_or_else(|error| panic!("{error}"));
    ScheduleSpec { start: start.map(bound), end: end.map(bound), ..parse(text) }
}

/// All occurrences of 2026.
#[track_caller]
fn check_all(spec: &ScheduleSpec, zone: &str, expected: &[&str]) {
    let schedule = compile(spec, zone);
    let (first, last) = (instant("2025-12-31T00:00:00Z"), instant("2027-01-02T00:00:00Z"));
    let found: Vec<String> = schedule.between(first, last).map(|at| shown(&schedule, at)).collect();
    assert_eq!(found, expected, "{spec}");
    let last = schedule.prev(last).map(|at| shown(&schedule, at));
    assert_eq!(last.as_deref(), expected.last().copied(), "{spec}");
}

#[test]
fn both_bounds_are_inclusive() {
    check_all(
        &within("0 12 * * *", Some("2026-03-01T12:00:00Z"), Some("2026-03-03T12:00:00Z")),
        "UTC",
        &["2026-03-01T12:00+00:00", "2026-03-02T12:00+00:00", "2026-03-03T12:00+00:00"],
    );
    check_all(&within("0 12 * * *", Some("2026-03-01T12:00:01Z"), Some("2026-03-02T11:59:59Z")), "UTC", &[]);
}

#[test]
fn day_as_end_includes_the_whole_day() {
    check_all(
        &within("0 */12 * * *", Some("2026-03-01"), Some("2026-03-02")),
        "America/New_York",
        &["2026-03-01T00:00-05:00", "2026-03-01T12:00-05:00", "2026-03-02T00:00-05:00", "2026-03-02T12:00-05:00"],
    );
    // A day that begins with a gap begins at the gap's end.
    check_all(
        &within("*/30 0-1 * * *", Some("2026-03-29"), Some("2026-03-29")),
        "Asia/Beirut",
        &["2026-03-29T01:00+03:00", "2026-03-29T01:30+03:00"],
    );
}

#[test]
fn bounds_in_a_fold_mean_the_first_time() {
    let fold = "2026-10-25T02:30";
    check_all(&within("30 * * * *", Some(fold), Some(fold)), "Europe/Berlin", &["2026-10-25T02:30+02:00"]);
}

#[test]
fn bounds_in_a_gap_mean_its_end() {
    let gap = "2026-03-29T02:30";
    check_spec(
        &within("0 * * * *", Some(gap), None),
        "Europe/Berlin",
        "2026-01-01T00:00:00Z",
        &["2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"],
    );
    check_all(
        &within("0 * * * *", Some("2026-03-29T01:00"), Some(gap)),
        "Europe/Berlin",
        &["2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"],
    );
}

#[test]
fn start_does_not_move_an_interval() {
    check_all(
        &within("@every 7m", Some("2026-03-01T00:00:00Z"), Some("2026-03-01T00:15:00Z")),
        "UTC",
        &["2026-03-01T00:06+00:00", "2026-03-01T00:13+00:00"],
    );
}

/// In Havana the clock goes from 01:00 back to 00:00, so midnight is repeated, and both belong to the new day.
#[test]
fn day_as_end_where_midnight_is_repeated() {
    let end = Some(TimeBound::parse("2026-10-31").expect("a date"));
    let half_past = ScheduleSpec { end, ..parse("30 0 * * *") };
    check_spec(&half_past, "America/Havana", "2026-10-30T12:00:00Z", &["2026-10-31T00:30-04:00"]);
    assert_eq!(compile(&half_past, "America/Havana").coming(instant("2026-10-30T12:00:00Z")).count(), 1);
    let every = compile(&ScheduleSpec { end, ..parse("@every 30m") }, "America/Havana");
    assert_eq!(every.prev(instant("2027-01-01T00:00:00Z")), Some(instant("2026-11-01T03:30:00Z")));
}
