//! The search for the next and previous local time of a cron rule. It goes month by month, so that it ends quickly even
//! if nothing matches. A calendar is an additional set of days.

use super::bits::{CronBits, YEAR_MAX, YEAR_MIN};
use crate::calendar::Calendar;
use crate::civil::{DAY_SECS, Day, WallTime, Ymd};
use crate::walk::LocalTimes;

/// The local times of a cron rule, restricted to the days of a calendar if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CronTimes<'a> {
    pub(crate) cron: &'a CronBits,
    pub(crate) calendar: Option<&'a Calendar>,
}

impl LocalTimes for CronTimes<'_> {
    fn at_or_after(&self, from: WallTime) -> Option<WallTime> {
        let today = from.day();
        if self.matches_day(today)
            && let Some(second) = self.time_at_or_after(from.second_of_day())
        {
            return Some(WallTime(today.midnight().0 + i64::from(second)));
        }
        let first = self.time_at_or_after(0)?;
        let day = self.day_at_or_after(today.plus(1))?;
        Some(WallTime(day.midnight().0 + i64::from(first)))
    }

    fn at_or_before(&self, until: WallTime) -> Option<WallTime> {
        let today = until.day();
        if self.matches_day(today)
            && let Some(second) = self.time_at_or_before(until.second_of_day())
        {
            return Some(WallTime(today.midnight().0 + i64::from(second)));
        }
        let last = self.time_at_or_before((DAY_SECS - 1) as u32)?;
        let day = self.day_at_or_before(today.plus(-1))?;
        Some(WallTime(day.midnight().0 + i64::from(last)))
    }
}

impl CronTimes<'_> {
    fn matches_day(&self, day: Day) -> bool {
        let Ymd { year, month, day } = day.ymd();
        let in_year = self.cron.years.contains(year) && self.cron.months >> month & 1 == 1;
        in_year && self.month_days(year, month) >> day & 1 == 1
    }

    /// The matching days of a month as bits 1–31.
    fn month_days(&self, year: i32, month: u32) -> u32 {
        let days = self.cron.month_days(year, month);
        match self.calendar {
            Some(calendar) if days != 0 => days & calendar.month_days(Day::from_ymd(year, month, 1)),
            _ => days,
        }
    }

    /// The first matching second of the day at or after `second`.
    fn time_at_or_after(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let first_second = self.cron.seconds.trailing_zeros();
        if self.cron.hours >> hour & 1 == 1 {
            if self.cron.minutes >> minute & 1 == 1
                && let Some(second) = bit_at_or_after(self.cron.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = bit_at_or_after(self.cron.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + first_second);
            }
        }
        let hour = bit_at_or_after(u64::from(self.cron.hours), hour + 1)?;
        Some(hour * 3600 + self.cron.minutes.trailing_zeros() * 60 + first_second)
    }

    /// The last matching second of the day at or before `second`.
    fn time_at_or_before(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let last_second = 63 - self.cron.seconds.leading_zeros();
        if self.cron.hours >> hour & 1 == 1 {
            if self.cron.minutes >> minute & 1 == 1
                && let Some(second) = bit_at_or_before(self.cron.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = minute.checked_sub(1).and_then(|most| bit_at_or_before(self.cron.minutes, most)) {
                return Some(hour * 3600 + minute * 60 + last_second);
            }
        }
        let hour = bit_at_or_before(u64::from(self.cron.hours), hour.checked_sub(1)?)?;
        Some(hour * 3600 + (63 - self.cron.minutes.leading_zeros()) * 60 + last_second)
    }

    /// The first matching day at or after `from`.
    fn day_at_or_after(&self, from: Day) -> Option<Day> {
        let Ymd { mut year, mut month, mut day } = from.ymd();
        if year < YEAR_MIN {
            (year, month, day) = (YEAR_MIN, 1, 1);
        }
        while year <= YEAR_MAX {
            if self.cron.years.contains(year) {
                while let Some(candidate) = bit_at_or_after(u64::from(self.cron.months), month) {
                    if candidate > month {
                        day = 1;
                    }
                    if let Some(day) = bit_at_or_after(u64::from(self.month_days(year, candidate)), day) {
                        return Some(Day::from_ymd(year, candidate, day));
                    }
                    month = candidate + 1;
                    day = 1;
                }
            }
            (year, month, day) = (year + 1, 1, 1);
        }
        None
    }

    /// The last matching day at or before `until`.
    fn day_at_or_before(&self, until: Day) -> Option<Day> {
        let Ymd { mut year, mut month, mut day } = until.ymd();
        if year > YEAR_MAX {
            (year, month, day) = (YEAR_MAX, 12, 31);
        }
        while year >= YEAR_MIN {
            if self.cron.years.contains(year) {
                while let Some(candidate) = bit_at_or_before(u64::from(self.cron.months), month) {
                    if candidate < month {
                        day = 31;
                    }
                    if let Some(day) = bit_at_or_before(u64::from(self.month_days(year, candidate)), day) {
                        return Some(Day::from_ymd(year, candidate, day));
                    }
                    month = candidate - 1;
                    day = 31;
                }
            }
            (year, month, day) = (year - 1, 12, 31);
        }
        None
    }
}

fn bit_at_or_after(bits: u64, from: u32) -> Option<u32> {
    let left = bits.checked_shr(from)?;
    if left == 0 { None } else { Some(from + left.trailing_zeros()) }
}

fn bit_at_or_before(bits: u64, until: u32) -> Option<u32> {
    let left = bits & (u64::MAX >> (63 - until.min(63)));
    if left == 0 { None } else { Some(63 - left.leading_zeros()) }
}
