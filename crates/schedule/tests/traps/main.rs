//! Known traps of schedules, each in its own test with explicit dates. The property tests check the rules in general;
//! these show examples and guard against bugs of other schedulers.

mod bounds;
mod clock_changes;
mod days;
mod kinds;
mod skipped_days;
mod stable;

use cronhold_schedule::calendar::{Calendar, CalendarSet};
use cronhold_schedule::{CompileContext, Instant, Schedule, ScheduleSpec, TimeOfDay, ZoneRegistry};

/// Calendars that the tests use: Labour Day and Christmas of 2026.
fn calendars() -> CalendarSet {
    let mut calendars = CalendarSet::new();
    calendars.insert("holidays", Calendar::from_dates("2026-05-01\n2026-12-25").expect("two dates"));
    calendars
}

fn compile(spec: &ScheduleSpec, zone: &str) -> Schedule {
    let zones = ZoneRegistry::bundled();
    let zone = zones.get(zone).expect(zone);
    let around = CompileContext { zones: &zones, zone: &zone, calendars: &calendars(), job: "reports/prices" };
    Schedule::compile(spec, around).unwrap_or_else(|error| panic!("{spec}: {error:?}"))
}

fn parse(text: &str) -> ScheduleSpec {
    ScheduleSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn instant(text: &str) -> Instant {
    Instant::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// An occurrence as local time, such as `2026-03-29T03:00+02:00`.
fn shown(schedule: &Schedule, at: Instant) -> String {
    let zone = schedule.zone();
    let offset = zone.offset_at(at.secs());
    let sign = if offset < 0 { '-' } else { '+' };
    format!("{}{sign}{}", zone.local(at.secs()), TimeOfDay(offset.unsigned_abs()))
}

/// Asserts the first occurrences after an instant, forwards and backwards.
#[track_caller]
fn check_spec(spec: &ScheduleSpec, zone: &str, after: &str, expected: &[&str]) {
    let schedule = compile(spec, zone);
    let after = instant(after);
    let found: Vec<Instant> = schedule.coming(after).take(expected.len()).collect();
    let texts: Vec<String> = found.iter().map(|at| shown(&schedule, *at)).collect();
    assert_eq!(texts, expected, "{spec} in {zone} after {after}");
    for pair in found.windows(2) {
        assert_eq!(schedule.prev(pair[1]), Some(pair[0]), "{spec} in {zone} before {}", pair[1]);
    }
}

#[track_caller]
fn check(text: &str, zone: &str, after: &str, expected: &[&str]) {
    check_spec(&parse(text), zone, after, expected);
}

/// Dates of a schedule that runs at midnight in UTC.
#[track_caller]
fn check_dates(text: &str, after: &str, expected: &str) {
    let expected: Vec<String> = expected.split(' ').map(|date| format!("{date}T00:00+00:00")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(text, "UTC", &format!("{after}T00:00:00Z"), &expected);
}

/// Asserts that there is no occurrence after an instant.
#[track_caller]
fn check_none(text: &str, zone: &str, after: &str) {
    assert_eq!(compile(&parse(text), zone).next(instant(after)), None, "{text} in {zone} after {after}");
}
