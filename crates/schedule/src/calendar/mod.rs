//! Calendars: sets of days. Weekdays, date files, ICS files, and set operations over them. A calendar is compiled once;
//! every query is a bounded scan without allocation.

mod bitmap;
mod dates;
mod days;
mod expr;
mod ics;
mod mistakes;
mod named;
mod parse;
mod weekdays;

use std::fmt;
use std::sync::Arc;

pub use bitmap::{FIRST_DAY, LAST_DAY};
pub use expr::CalendarExpr;
pub use named::CalendarSet;
pub use parse::check_name;

use crate::civil::Day;
use crate::text::TextError;
use bitmap::DayBitmap;
use days::{DaySet, SetOperator};

/// A compiled set of days. Cheap to clone.
///
/// Invariant: it contains no day before `FIRST_DAY` or after `LAST_DAY`.
#[derive(Clone, PartialEq, Eq)]
pub struct Calendar {
    days: DaySet,
    known_until: Option<Day>,
}

impl Calendar {
    /// The calendar of all days.
    pub fn all() -> Self {
        Self { days: DaySet::ALL, known_until: None }
    }

    /// The calendar without days.
    pub fn none() -> Self {
        Self { days: DaySet::NONE, known_until: None }
    }

    /// Every day whose weekday is in the mask; bit 0 is Sunday, bit 7 is ignored.
    pub fn weekdays(mask: u8) -> Self {
        Self { days: DaySet::Weekdays(mask & weekdays::WEEK), known_until: None }
    }

    /// Parses a date file: one date per line. Text after the date, empty lines and lines that begin with `#` are
    /// ignored. `START date` and `STOP date` state which days the file covers; the `STOP` day is excluded.
    pub fn from_dates(text: &str) -> Result<Self, Vec<TextError>> {
        dates::read(text)
    }

    /// Parses an iCalendar file (RFC 5545). A day belongs to the calendar if an event covers it, in the zone of the
    /// event.
    pub fn from_ics(text: &str) -> Result<Self, Vec<TextError>> {
        ics::read(text)
    }

    /// Whether the day is in the calendar.
    pub fn contains(&self, day: Day) -> bool {
        self.days.contains(day)
    }

    /// The days of the month that begins with `first`, as bits from 1 on; bits past the month's end are undefined.
    pub(crate) fn month_days(&self, first: Day) -> u32 {
        self.days.month_days(first)
    }

    /// The first day of the calendar at or after `day`.
    pub fn next(&self, day: Day) -> Option<Day> {
        self.days.nth_after(day.plus(-1), 1)
    }

    /// The last day of the calendar at or before `day`.
    pub fn prev(&self, day: Day) -> Option<Day> {
        self.days.nth_before(day.plus(1), 1)
    }

    /// The day `by` calendar days later, or earlier if negative. From a day outside the calendar, the first step leads
    /// to the nearest calendar day in that direction. Zero returns the day unchanged, in the calendar or not. `None` if
    /// the calendar has too few days.
    pub fn shift(&self, day: Day, by: i32) -> Option<Day> {
        match by {
            0 => Some(day),
            1.. => self.days.nth_after(day, by.unsigned_abs()),
            ..0 => self.days.nth_before(day, by.unsigned_abs()),
        }
    }

    /// The last day that its files cover; the earliest such day if there are several files. `None` if it never runs
    /// out, such as for weekdays and rules without end.
    pub fn known_until(&self) -> Option<Day> {
        self.known_until
    }

    fn listed(days: DayBitmap, known_until: Option<Day>) -> Self {
        let known_until = known_until.map(|day| day.min(LAST_DAY));
        Self { days: DaySet::Listed(Arc::new(days)), known_until }
    }

    fn combined(&self, operator: SetOperator, other: &Self) -> Self {
        let known_until = match (self.known_until, other.known_until) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { days: self.days.combined(operator, &other.days), known_until }
    }
}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.days {
            DaySet::Weekdays(0) => f.write_str("Calendar(none)"),
            DaySet::Weekdays(weekdays::WEEK) => f.write_str("Calendar(all)"),
            DaySet::Weekdays(mask) => write!(f, "Calendar({})", weekdays::weekdays_text(*mask)),
            DaySet::Listed(bitmap) => {
                let (first, last) = (self.next(FIRST_DAY), self.prev(LAST_DAY));
                write!(f, "Calendar({} days, {first:?} to {last:?})", bitmap.count())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        Day::parse(text).expect(text)
    }

    #[test]
    fn next_and_prev_are_inclusive() {
        let business = Calendar::weekdays(0b011_1110);
        for (from, next, prev) in [
            ("2026-03-06", "2026-03-06", "2026-03-06"),
            ("2026-03-07", "2026-03-09", "2026-03-06"),
            ("2026-03-08", "2026-03-09", "2026-03-06"),
        ] {
            assert_eq!(business.next(day(from)), Some(day(next)), "{from}");
            assert_eq!(business.prev(day(from)), Some(day(prev)), "{from}");
        }
        assert_eq!(Calendar::none().next(FIRST_DAY), None);
        assert_eq!(Calendar::none().prev(LAST_DAY), None);
        assert_eq!(Calendar::all().next(Day(i32::MIN)), Some(FIRST_DAY));
        assert_eq!(Calendar::all().prev(Day(i32::MAX)), Some(LAST_DAY));
        assert_eq!(Calendar::all().next(Day(i32::MAX)), None);
        assert!(!Calendar::all().contains(LAST_DAY.plus(1)));
    }

    #[test]
    fn shift_counts_calendar_days() {
        let business = Calendar::weekdays(0b011_1110);
        for (from, by, to) in [
            ("2026-03-06", 1, "2026-03-09"),
            ("2026-03-06", -1, "2026-03-05"),
            ("2026-03-06", 10, "2026-03-20"),
            ("2026-03-07", 1, "2026-03-09"),
            ("2026-03-07", 2, "2026-03-10"),
            ("2026-03-07", -1, "2026-03-06"),
            ("2026-03-07", -5, "2026-03-02"),
            ("2026-03-07", 0, "2026-03-07"),
        ] {
            assert_eq!(business.shift(day(from), by), Some(day(to)), "{from} by {by}");
        }
        assert_eq!(business.shift(day("2100-12-31"), 1), None);
        assert_eq!(business.shift(day("2026-03-07"), i32::MAX), None);
        assert_eq!(business.shift(day("2026-03-07"), i32::MIN), None);
        assert_eq!(Calendar::none().shift(day("2026-03-07"), 1), None);
    }

    #[test]
    fn prints_for_debugging() {
        let dates = Calendar::from_dates("2026-01-01\n2026-05-01").expect("two dates");
        assert_eq!(format!("{dates:?}"), "Calendar(2 days, Some(2026-01-01) to Some(2026-05-01))");
        assert_eq!(format!("{:?}", Calendar::weekdays(0xfe)), "Calendar(Mon-Sat)");
    }
}
