//! Shared by the fuzz targets: the guarantees of a schedule, checked from any instant, and the form of an error.

use std::sync::OnceLock;

use cronhold_schedule::calendar::{Calendar, CalendarSet};
use cronhold_schedule::{CompileContext, CompileError, Instant, Schedule, ScheduleSpec, TextError, Zone, ZoneRegistry};

/// Maximum length of a message for any input.
const MESSAGE_MAX: usize = 600;
/// Number of occurrences that are followed from one instant.
const STEPS: usize = 4;

/// The zones, built once.
pub fn zones() -> &'static ZoneRegistry {
    static ZONES: OnceLock<ZoneRegistry> = OnceLock::new();
    ZONES.get_or_init(ZoneRegistry::bundled)
}

/// A zone by index into all names.
pub fn zone(index: u16) -> Zone {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| zones().names());
    zones().get(&names[usize::from(index) % names.len()]).expect("listed")
}

/// Calendars that expressions can name.
pub fn calendars() -> &'static CalendarSet {
    static CALENDARS: OnceLock<CalendarSet> = OnceLock::new();
    CALENDARS.get_or_init(|| {
        let mut calendars = CalendarSet::new();
        let dates = "STOP 2030-01-01\n2026-01-01\n2026-05-01\n2026-12-25\n2028-02-29\n";
        calendars.insert("holidays", Calendar::from_dates(dates).expect("a good file"));
        calendars.insert("business", Calendar::weekdays(0b011_1110));
        calendars.insert("none-at-all", Calendar::none());
        calendars
    })
}

/// A schedule in a zone.
pub fn compile(spec: &ScheduleSpec, zone: &Zone) -> Result<Schedule, CompileError> {
    Schedule::compile(spec, CompileContext { zones: zones(), zone, calendars: calendars(), job: "fuzz/job" })
}

/// Checks that an error points into its text at character boundaries and has a short message.
pub fn check_mistake(text: &str, error: &TextError) {
    assert!(error.at.start <= error.at.end && error.at.end <= text.len(), "{error:?}");
    assert!(text.is_char_boundary(error.at.start) && text.is_char_boundary(error.at.end), "{error:?}");
    assert!(!error.message.is_empty());
    assert!(error.to_string().chars().count() <= MESSAGE_MAX, "{error}");
}

/// Checks the guarantees of a schedule at an instant: `next` is the smallest occurrence after it, `prev` the largest
/// before.
pub fn check_schedule(schedule: &Schedule, at: Instant) {
    if schedule.counts_from_previous() {
        assert!(schedule.next(at).is_none_or(|next| next > at));
        assert_eq!(schedule.prev(at), None);
        return;
    }
    let mut now = at;
    for _ in 0..STEPS {
        let Some(next) = schedule.next(now) else { break };
        assert!(next > now, "next({now}) is {next}");
        let back = schedule.prev(next);
        assert!(back.is_none_or(|back| back <= now), "prev({next}) is {back:?}, after {now}");
        assert!(back.is_none_or(|back| schedule.next(back) == Some(next)), "next(prev({next}))");
        assert!(
            schedule.prev(Instant::from_micros(next.micros() + 1)) == Some(next),
            "{next} is no occurrence backwards"
        );
        let later = schedule.jitter(next);
        assert!(schedule.next(next).is_none_or(|after| next.plus(later) < after), "jitter {later} of {next}");
        assert!(!schedule.automatic_args(next).is_empty());
        now = next;
    }
    let mut now = at;
    for _ in 0..STEPS {
        let Some(prev) = schedule.prev(now) else { break };
        assert!(prev < now, "prev({now}) is {prev}");
        let forth = schedule.next(prev);
        assert!(forth.is_none_or(|forth| forth >= now), "next({prev}) is {forth:?}, before {now}");
        now = prev;
    }
}
