//! Times of day on the days of a calendar.

use crate::calendar::Calendar;
use crate::civil::{Day, WallTime};
use crate::spec::{DailyTiming, DayShift};
use crate::walk::LocalTimes;

/// Times of day on shifted days of a calendar.
///
/// A shift along the calendar maps calendar days to calendar days, so the days of the runs are the calendar's days
/// moved by plain days only. The calendar day of a run is computed afterwards.
#[derive(Debug, Clone)]
pub(crate) struct DailyTimes {
    /// Seconds since midnight, in order.
    times: Box<[u32]>,
    shift: DayShift,
    calendar: Calendar,
}

impl DailyTimes {
    pub(crate) fn new(daily: &DailyTiming, calendar: Calendar) -> Self {
        let mut times: Vec<u32> = daily.times.iter().map(|time| time.0).collect();
        times.sort_unstable();
        times.dedup();
        Self { times: times.into(), shift: daily.shift, calendar }
    }

    /// The calendar day of a run on `day`.
    pub(crate) fn calendar_day(&self, day: Day) -> Option<Day> {
        self.calendar.shift(day.plus(-self.shift.days), -self.shift.calendar_days)
    }

    /// Whether there are runs on `day`.
    pub(crate) fn runs_on(&self, day: Day) -> bool {
        self.calendar.contains(day.plus(-self.shift.days))
    }

    pub(crate) fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// Its times of day, as seconds since midnight.
    pub(crate) fn times(&self) -> &[u32] {
        &self.times
    }

    fn at(day: Day, second: u32) -> WallTime {
        WallTime(day.midnight().0 + i64::from(second))
    }
}

impl LocalTimes for DailyTimes {
    fn at_or_after(&self, from: WallTime) -> Option<WallTime> {
        let today = from.day();
        let day = self.calendar.next(today.plus(-self.shift.days))?.plus(self.shift.days);
        if day > today {
            return Some(Self::at(day, *self.times.first()?));
        }
        if let Some(second) = self.times.iter().find(|second| **second >= from.second_of_day()) {
            return Some(Self::at(day, *second));
        }
        let day = self.calendar.next(today.plus(1 - self.shift.days))?.plus(self.shift.days);
        Some(Self::at(day, *self.times.first()?))
    }

    fn at_or_before(&self, until: WallTime) -> Option<WallTime> {
        let today = until.day();
        let day = self.calendar.prev(today.plus(-self.shift.days))?.plus(self.shift.days);
        if day < today {
            return Some(Self::at(day, *self.times.last()?));
        }
        if let Some(second) = self.times.iter().rfind(|second| **second <= until.second_of_day()) {
            return Some(Self::at(day, *second));
        }
        let day = self.calendar.prev(today.plus(-1 - self.shift.days))?.plus(self.shift.days);
        Some(Self::at(day, *self.times.last()?))
    }
}

/// The day that a calendar day is shifted to.
pub(crate) fn shifted(calendar: &Calendar, shift: DayShift, day: Day) -> Option<Day> {
    Some(calendar.shift(day, shift.calendar_days)?.plus(shift.days))
}
