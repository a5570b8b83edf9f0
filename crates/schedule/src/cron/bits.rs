//! The one internal form behind all cron dialects: sets of seconds, minutes, hours, days, months
//! and years as bits, and the search for the next local time that is in all of them.

use crate::civil::{DAY_SECS, Day, Local, Ymd, month_len};
use crate::walk::LocalTimes;

/// First year that can be named.
pub(crate) const YEAR_MIN: i32 = 1970;
/// Last year that can be named.
pub(crate) const YEAR_MAX: i32 = 2099;
/// All weeks of a year, bits 1–53.
pub(crate) const ALL_WEEKS: u64 = ((1 << 54) - 1) & !1;
/// `nth` holds six bits a weekday: first to fifth, then last.
pub(crate) const NTH_PER_WEEKDAY: u32 = 6;
/// The bit of `nth` that means the last such weekday of a month.
pub(crate) const NTH_LAST: u32 = 5;

/// A cron rule in bits. A value's bit has the value's own number; weekday 0 is Sunday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cron {
    pub(crate) seconds: u64,
    pub(crate) minutes: u64,
    /// ISO weeks of the year.
    pub(crate) weeks: u64,
    /// The n-th or last such weekday of a month.
    pub(crate) nth: u64,
    /// Years since 1970.
    pub(crate) years: Years,
    pub(crate) hours: u32,
    pub(crate) days: u32,
    /// The working day nearest to this day of the month.
    pub(crate) nearest: u32,
    /// Days counted from the end of the month; bit 0 is the last day.
    pub(crate) from_end: u32,
    pub(crate) months: u16,
    pub(crate) weekdays: u8,
    pub(crate) traits: Traits,
}

/// What the sets alone do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "five independent facts about a text, kept in five bytes")]
pub(crate) struct Traits {
    /// The last working day of the month is one of the days.
    pub(crate) last_working_day: bool,
    /// Days of the month were restricted by something other than `*`.
    pub(crate) days_restricted: bool,
    /// Weekdays were restricted by something other than `*`.
    pub(crate) weekdays_restricted: bool,
    /// Both restrictions must hold; otherwise either is enough.
    pub(crate) both_must_match: bool,
    /// Hours are `*` or `*/n`: the schedule follows elapsed time over clock changes.
    pub(crate) every_hour: bool,
}

/// A set of years from 1970 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Years([u64; 3]);

impl Years {
    pub(crate) const NONE: Self = Self([0; 3]);

    pub(crate) fn all() -> Self {
        let mut all = Self::NONE;
        for year in YEAR_MIN..=YEAR_MAX {
            all.insert(year);
        }
        all
    }

    pub(crate) fn insert(&mut self, year: i32) {
        let bit = (year - YEAR_MIN).cast_unsigned();
        self.0[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    pub(crate) fn contains(&self, year: i32) -> bool {
        if !(YEAR_MIN..=YEAR_MAX).contains(&year) {
            return false;
        }
        let bit = (year - YEAR_MIN).cast_unsigned();
        self.0[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }
}

impl Cron {
    /// Nothing in any set.
    pub(crate) const EMPTY: Self = Self {
        seconds: 0,
        minutes: 0,
        weeks: ALL_WEEKS,
        nth: 0,
        years: Years::NONE,
        hours: 0,
        days: 0,
        nearest: 0,
        from_end: 0,
        months: 0,
        weekdays: 0,
        traits: Traits {
            last_working_day: false,
            days_restricted: false,
            weekdays_restricted: false,
            both_must_match: false,
            every_hour: false,
        },
    };

    /// Whether its hours are `*` or `*/n`.
    pub(crate) fn every_hour(&self) -> bool {
        self.traits.every_hour
    }

    /// Whether it runs in each hour of the day.
    pub(crate) fn runs_all_hours(&self) -> bool {
        self.hours == 0xff_ffff
    }

    /// Whether both days are restricted and either is enough.
    pub(crate) fn either_day_matches(&self) -> bool {
        self.traits.days_restricted && self.traits.weekdays_restricted && !self.traits.both_must_match
    }

    /// Whether all its days are such that some months do not have them.
    pub(crate) fn only_late_days(&self) -> bool {
        let late = !0 << 29;
        let numbered = self.days | self.nearest;
        let elsewhere = self.from_end != 0 || self.traits.last_working_day || self.nth != 0;
        self.traits.days_restricted && !self.either_day_matches() && !elsewhere && numbered & !late == 0
    }

    /// Whether a day is one of the days that it speaks of.
    pub(crate) fn matches_day(&self, day: Day) -> bool {
        let Ymd { year, month, day } = day.ymd();
        self.years.contains(year) && self.months >> month & 1 == 1 && self.month_days(year, month) >> day & 1 == 1
    }

    /// The matching days of a month as bits 1–31.
    fn month_days(&self, year: i32, month: u32) -> u32 {
        let len = month_len(year, month);
        let all = (u32::MAX >> (31 - len)) & !1;
        let first_weekday = Day::from_ymd(year, month, 1).weekday();
        let by_day = if self.traits.days_restricted { self.days_by_number(len, first_weekday) } else { all };
        let by_weekday = if self.traits.weekdays_restricted { self.days_by_weekday(len, first_weekday) } else { all };
        let either = self.traits.days_restricted && self.traits.weekdays_restricted && !self.traits.both_must_match;
        let mut days = all & if either { by_day | by_weekday } else { by_day & by_weekday };
        if self.weeks != ALL_WEEKS {
            for day in 1..=len {
                let week = Day::from_ymd(year, month, day).iso_week();
                days &= !(u32::from(self.weeks >> week & 1 == 0) << day);
            }
        }
        days
    }

    /// Days given by their number in the month.
    fn days_by_number(&self, len: u32, first_weekday: u32) -> u32 {
        let mut days = self.days;
        let weekday_of = |day: u32| (first_weekday + day - 1) % 7;
        let mut from_end = self.from_end;
        while from_end != 0 {
            let back = from_end.trailing_zeros();
            from_end &= from_end - 1;
            if back < len {
                days |= 1 << (len - back);
            }
        }
        if self.traits.last_working_day {
            days |= 1 << nearest_working_day(len, weekday_of(len), len);
        }
        let mut nearest = self.nearest;
        while nearest != 0 {
            let day = nearest.trailing_zeros();
            nearest &= nearest - 1;
            if day <= len {
                days |= 1 << nearest_working_day(day, weekday_of(day), len);
            }
        }
        if self.traits.both_must_match {
            days |= self.nth_days(len, first_weekday);
        }
        days
    }

    /// Days given by their weekday.
    fn days_by_weekday(&self, len: u32, first_weekday: u32) -> u32 {
        // Bit n of the week that starts at the first of the month.
        let turned = (u32::from(self.weekdays) | u32::from(self.weekdays) << 7) >> first_weekday & 0x7f;
        // That week five times over; day 1 is bit 1.
        let days = (u64::from(turned) * 0x1020_4081) << 1;
        let days = (days & u64::from(u32::MAX)) as u32;
        if self.traits.both_must_match { days } else { days | self.nth_days(len, first_weekday) }
    }

    /// Days such as the third Friday.
    fn nth_days(&self, len: u32, first_weekday: u32) -> u32 {
        let mut days = 0;
        let mut nth = self.nth;
        while nth != 0 {
            let bit = nth.trailing_zeros();
            nth &= nth - 1;
            let first = 1 + (bit / NTH_PER_WEEKDAY + 7 - first_weekday) % 7;
            let day = match bit % NTH_PER_WEEKDAY {
                NTH_LAST => first + (len - first) / 7 * 7,
                weeks => first + weeks * 7,
            };
            if day <= len {
                days |= 1 << day;
            }
        }
        days
    }

    /// The first matching second of a day at or after one.
    fn time_at_or_after(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let first_second = self.seconds.trailing_zeros();
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = bit_at_or_after(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = bit_at_or_after(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + first_second);
            }
        }
        let hour = bit_at_or_after(u64::from(self.hours), hour + 1)?;
        Some(hour * 3600 + self.minutes.trailing_zeros() * 60 + first_second)
    }

    /// The last matching second of a day at or before one.
    fn time_at_or_before(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let last_second = 63 - self.seconds.leading_zeros();
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = bit_at_or_before(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = minute.checked_sub(1).and_then(|most| bit_at_or_before(self.minutes, most)) {
                return Some(hour * 3600 + minute * 60 + last_second);
            }
        }
        let hour = bit_at_or_before(u64::from(self.hours), hour.checked_sub(1)?)?;
        Some(hour * 3600 + (63 - self.minutes.leading_zeros()) * 60 + last_second)
    }

    /// The first matching day at or after one.
    fn day_at_or_after(&self, from: Day) -> Option<Day> {
        let Ymd { mut year, mut month, mut day } = from.ymd();
        if year < YEAR_MIN {
            (year, month, day) = (YEAR_MIN, 1, 1);
        }
        while year <= YEAR_MAX {
            if self.years.contains(year) {
                while let Some(candidate) = bit_at_or_after(u64::from(self.months), month) {
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

    /// The last matching day at or before one.
    fn day_at_or_before(&self, until: Day) -> Option<Day> {
        let Ymd { mut year, mut month, mut day } = until.ymd();
        if year > YEAR_MAX {
            (year, month, day) = (YEAR_MAX, 12, 31);
        }
        while year >= YEAR_MIN {
            if self.years.contains(year) {
                while let Some(candidate) = bit_at_or_before(u64::from(self.months), month) {
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

impl LocalTimes for Cron {
    fn at_or_after(&self, from: Local) -> Option<Local> {
        let today = from.day();
        if self.matches_day(today)
            && let Some(second) = self.time_at_or_after(from.second_of_day())
        {
            return Some(Local(today.midnight().0 + i64::from(second)));
        }
        let first = self.time_at_or_after(0)?;
        let day = self.day_at_or_after(today.plus(1))?;
        Some(Local(day.midnight().0 + i64::from(first)))
    }

    fn at_or_before(&self, until: Local) -> Option<Local> {
        let today = until.day();
        if self.matches_day(today)
            && let Some(second) = self.time_at_or_before(until.second_of_day())
        {
            return Some(Local(today.midnight().0 + i64::from(second)));
        }
        let last = self.time_at_or_before((DAY_SECS - 1) as u32)?;
        let day = self.day_at_or_before(today.plus(-1))?;
        Some(Local(day.midnight().0 + i64::from(last)))
    }
}

/// The working day nearest to a day without leaving the month.
fn nearest_working_day(day: u32, weekday: u32, len: u32) -> u32 {
    match weekday {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == len => day - 2,
        0 => day + 1,
        _ => day,
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
