//! Properties of schedules over all zones and all of 1970–2100, checked against an oracle that tries every local time.
//! Seeds are fixed: the same cases on every run.

mod dice;
mod entries;
mod expression;
mod kinds;
mod named;
mod oracle;
mod transitions;

use cronhold_schedule::calendar::CalendarSet;
use cronhold_schedule::{CompileContext, Instant, Schedule, ScheduleSpec, Zone, ZoneRegistry};

/// A schedule in a zone.
fn compile(spec: &ScheduleSpec, zones: &ZoneRegistry, zone: &Zone) -> Schedule {
    let calendars = CalendarSet::new();
    let around = CompileContext { zones, zone, calendars: &calendars, job: "properties" };
    Schedule::compile(spec, around).unwrap_or_else(|error| panic!("{spec}: {error:?}"))
}

/// The occurrences found with `next`, which must increase. Stops after `most`.
fn forwards(schedule: &Schedule, after: i64, until: i64, most: usize) -> Vec<i64> {
    let mut last = after;
    let occurrences = schedule.between(Instant::from_secs(after), Instant::from_secs(until)).take(most + 1);
    occurrences
        .map(|at| {
            assert!(at.secs() > last, "{at:?} is not after {:?}", Instant::from_secs(last));
            assert_eq!(at.micros() % 1_000_000, 0, "occurrences are whole seconds");
            last = at.secs();
            last
        })
        .collect()
}

/// The occurrences found with `prev`, in ascending order.
fn backwards(schedule: &Schedule, after: i64, until: i64, most: usize) -> Vec<i64> {
    let from = schedule.prev(Instant::from_secs(until + 1));
    let mut found: Vec<i64> = std::iter::successors(from, |at| {
        let before = schedule.prev(*at);
        assert!(before.is_none_or(|before| before < *at), "{before:?} is not before {at:?}");
        before
    })
    .map(Instant::secs)
    .take_while(|at| *at > after)
    .take(most + 1)
    .collect();
    found.reverse();
    found
}

/// With S the set of occurrences, `next(t)` is the smallest element of S above t and `prev(t)` the largest below. It
/// follows that nothing lies between t and `next(t)`, and that each inverts the other.
fn check_mirror(schedule: &Schedule, at: i64) {
    let at = Instant::from_secs(at);
    if let Some(next) = schedule.next(at) {
        let before = schedule.prev(next);
        assert!(before.is_none_or(|before| before <= at), "prev({next:?}) = {before:?} is after {at:?}");
        if let Some(before) = before {
            assert_eq!(schedule.next(before), Some(next), "next(prev({next:?}))");
        }
        assert_eq!(schedule.prev(Instant::from_micros(next.micros() + 1)), Some(next), "just after {next:?}");
        assert_eq!(schedule.next(Instant::from_micros(next.micros() - 1)), Some(next), "just before {next:?}");
    }
    if let Some(prev) = schedule.prev(at) {
        let after = schedule.next(prev);
        assert!(after.is_none_or(|after| after >= at), "next({prev:?}) = {after:?} is before {at:?}");
        if let Some(after) = after {
            assert_eq!(schedule.prev(after), Some(prev), "prev(next({prev:?}))");
        }
    }
}

/// Formats lists of seconds that differ.
fn show_difference(found: &[i64], expected: &[i64]) -> String {
    let text = |all: &[i64], other: &[i64]| {
        let only = all.iter().filter(|at| !other.contains(at)).take(5);
        only.map(|at| Instant::from_secs(*at).to_string()).collect::<Vec<_>>().join(" ")
    };
    format!("too many: [{}], missing: [{}]", text(found, expected), text(expected, found))
}
