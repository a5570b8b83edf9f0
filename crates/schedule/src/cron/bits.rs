//! The internal form of all cron dialects: sets of seconds, minutes, hours, days, months and years as bits.

use crate::civil::{Day, month_len, weekdays_of_month};

/// First year that a field can contain.
pub(crate) const YEAR_MIN: i32 = 1970;
/// Last year that a field can contain.
pub(crate) const YEAR_MAX: i32 = 2100;
/// All months of a year, bits 1–12.
pub(crate) const ALL_MONTHS: u16 = 0x1ffe;
/// All weeks of a year, bits 1–53.
pub(crate) const ALL_WEEKS: u64 = ((1 << 54) - 1) & !1;
/// `nth` has six bits per weekday: first to fifth, then last.
pub(crate) const NTH_PER_WEEKDAY: u32 = 6;
/// The bit of `nth` for the last such weekday of a month.
pub(crate) const NTH_LAST: u32 = 5;

/// A cron rule as bit sets. Bit n stands for value n; weekday 0 is Sunday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CronBits {
    pub(crate) seconds: u64,
    pub(crate) minutes: u64,
    /// ISO weeks of the year.
    pub(crate) weeks: u64,
    /// The n-th or last such weekday of a month.
    pub(crate) nth: u64,
    /// Years since 1970.
    pub(crate) years: YearSet,
    pub(crate) hours: u32,
    pub(crate) days: u32,
    /// Days of the month written with `W`: the working day nearest to them.
    pub(crate) nearest: u32,
    /// Days counted from the end of the month; bit 0 is the last day.
    pub(crate) from_end: u32,
    pub(crate) months: u16,
    pub(crate) weekdays: u8,
    pub(crate) traits: CronTraits,
}

/// Properties of a rule that its sets do not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "five independent facts about a text, kept in five bytes")]
pub(crate) struct CronTraits {
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
pub(crate) struct YearSet([u64; 3]);

impl YearSet {
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

impl CronBits {
    /// All sets are empty.
    pub(crate) const EMPTY: Self = Self {
        seconds: 0,
        minutes: 0,
        weeks: ALL_WEEKS,
        nth: 0,
        years: YearSet::NONE,
        hours: 0,
        days: 0,
        nearest: 0,
        from_end: 0,
        months: 0,
        weekdays: 0,
        traits: CronTraits {
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

    /// Whether no day of a year is left out.
    pub(crate) fn runs_all_days(&self) -> bool {
        let traits = self.traits;
        let restricted = traits.days_restricted || traits.weekdays_restricted;
        !restricted && self.months == ALL_MONTHS && self.weeks == ALL_WEEKS
    }

    /// Whether day of month and weekday are both restricted and one match is enough.
    pub(crate) fn either_day_matches(&self) -> bool {
        self.traits.days_restricted && self.traits.weekdays_restricted && !self.traits.both_must_match
    }

    /// The first day of the month it names, if its days are determined only by numbers counted from the first.
    pub(crate) fn first_numbered_day(&self) -> Option<u32> {
        let elsewhere = self.from_end != 0 || self.traits.last_working_day || self.nth != 0;
        let numbered = self.days | self.nearest;
        let only = self.traits.days_restricted && !self.either_day_matches() && !elsewhere && numbered != 0;
        only.then(|| numbered.trailing_zeros())
    }

    /// Its months that contain none of its numbered days in a given year.
    pub(crate) fn months_without_its_days(&self, year: i32) -> Vec<u32> {
        let first = self.first_numbered_day().unwrap_or(0);
        (1..=12).filter(|month| self.months >> month & 1 == 1 && first > month_len(year, *month)).collect()
    }

    /// The matching days of a month as bits 1–31.
    pub(super) fn month_days(&self, year: i32, month: u32) -> u32 {
        let len = month_len(year, month);
        let all = (u32::MAX >> (31 - len)) & !1;
        let first_weekday = Day::from_ymd(year, month, 1).weekday();
        let by_day = if self.traits.days_restricted { self.days_by_number(len, first_weekday) } else { all };
        let by_weekday = if self.traits.weekdays_restricted { self.days_by_weekday(len, first_weekday) } else { all };
        let mut days = all & if self.either_day_matches() { by_day | by_weekday } else { by_day & by_weekday };
        if self.weeks != ALL_WEEKS && days != 0 {
            days &= self.days_by_week(year, month, len);
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
        let days = weekdays_of_month(self.weekdays, first_weekday);
        if self.traits.both_must_match { days } else { days | self.nth_days(len, first_weekday) }
    }

    /// Days given by their ISO week.
    fn days_by_week(&self, year: i32, month: u32, len: u32) -> u32 {
        let first = Day::from_ymd(year, month, 1);
        let mut week = first.iso_week_in(year);
        // A month touches at most six weeks, which are consecutive except at the turn of the year.
        if week < 48 && self.weeks >> week & 0x3f == 0 {
            return 0;
        }
        let mut days = 0;
        let mut day = 1;
        while day <= len {
            // The first week of the month may begin before it.
            let monday = day + 7 - (first.plus(day.cast_signed() - 1).weekday() + 6) % 7;
            if self.weeks >> week & 1 == 1 {
                days |= (u32::MAX << day) & (u32::MAX >> (31 - (monday - 1).min(31)));
            }
            day = monday;
            // Week numbers increase except at the turn of the year.
            week = if week < 52 { week + 1 } else { first.plus(day.cast_signed() - 1).iso_week() };
        }
        days
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
}

/// The working day nearest to a day within the same month.
fn nearest_working_day(day: u32, weekday: u32, len: u32) -> u32 {
    match weekday {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == len => day - 2,
        0 => day + 1,
        _ => day,
    }
}
