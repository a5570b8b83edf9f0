//! Dates and times of day without a zone, as plain integers. The search for the next occurrence spends most of its time
//! here, so it uses integer arithmetic only.

use std::fmt;

use crate::text::{TextError, not_a};

/// Seconds in a day.
pub const DAY_SECS: i64 = 86_400;

/// A date of the Gregorian calendar: days since 1970-01-01.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

/// A local (wall clock) time: seconds since 1970-01-01T00:00:00 local time.
///
/// It identifies an instant only together with a zone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub i64);

/// Year, month (1–12) and day of the month (1–31).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ymd {
    /// Year, such as 2026.
    pub year: i32,
    /// 1 is January.
    pub month: u32,
    /// 1 is the first of the month.
    pub day: u32,
}

/// Names of weekdays; the index is the number that cron gives them (0 is Sunday).
pub const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Names of months; January has index 0.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl Day {
    /// The day of a date. The date must exist.
    pub const fn from_ymd(year: i32, month: u32, day: u32) -> Self {
        // Howard Hinnant's days_from_civil: years begin in March, so that leap days come last.
        let year = if month <= 2 { year - 1 } else { year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month_index = ((month + 9) % 12).cast_signed();
        let day_of_year = (153 * month_index + 2) / 5 + day.cast_signed() - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        Self(era * 146_097 + day_of_era - 719_468)
    }

    /// Its year, month and day.
    pub const fn ymd(self) -> Ymd {
        let shifted = self.0 + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_index = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * month_index + 2) / 5 + 1).cast_unsigned();
        let month = (if month_index < 10 { month_index + 3 } else { month_index - 9 }).cast_unsigned();
        let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
        Ymd { year, month, day }
    }

    /// 0 is Sunday.
    pub const fn weekday(self) -> u32 {
        (self.0 + 4).rem_euclid(7).cast_unsigned()
    }

    /// The day `days` later.
    #[must_use]
    pub const fn plus(self, days: i32) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// Its local midnight.
    pub const fn midnight(self) -> WallTime {
        WallTime(self.0 as i64 * DAY_SECS)
    }

    /// Number of its ISO 8601 week, 1–53.
    pub const fn iso_week(self) -> u32 {
        self.iso_week_in(self.ymd().year)
    }

    /// Like `iso_week`, for a day whose year is already known.
    pub(crate) const fn iso_week_in(self, year: i32) -> u32 {
        let weekday_from_monday = ((self.weekday() + 6) % 7).cast_signed();
        // A week belongs to the year that its Thursday lies in.
        let thursday = self.plus(3 - weekday_from_monday);
        let mut new_year = Self::from_ymd(year, 1, 1);
        if thursday.0 < new_year.0 {
            new_year = Self::from_ymd(year - 1, 1, 1);
        } else if self.0 - new_year.0 > 360 && thursday.0 >= Self::from_ymd(year + 1, 1, 1).0 {
            new_year = Self::from_ymd(year + 1, 1, 1);
        }
        ((thursday.0 - new_year.0) / 7 + 1).cast_unsigned()
    }

    /// Parses a date in the form `2026-03-29`.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let wrong = || not_a(text, "a date").hint("write year-month-day, such as 2026-03-29");
        let mut parts = text.splitn(3, '-');
        let mut part = |len: usize| {
            let digits = parts.next().filter(|part| part.len() == len && part.bytes().all(|b| b.is_ascii_digit()))?;
            digits.parse::<u32>().ok()
        };
        let (Some(year), Some(month), Some(day)) = (part(4), part(2), part(2)) else {
            return Err(wrong());
        };
        let year = year.cast_signed();
        if !(1..=12).contains(&month) || day < 1 || day > month_len(year, month) {
            return Err(TextError::new(0..text.len(), format!("there is no {text} in the calendar")));
        }
        Ok(Self::from_ymd(year, month, day))
    }
}

impl WallTime {
    pub const fn day(self) -> Day {
        Day(clamp_i32(self.0.div_euclid(DAY_SECS)))
    }

    /// Seconds since its midnight.
    pub const fn second_of_day(self) -> u32 {
        self.0.rem_euclid(DAY_SECS) as u32
    }
}

const fn clamp_i32(value: i64) -> i32 {
    // Local times stay within a few thousand years of 1970; the limit prevents overflow on nonsense input.
    if value > 10_000_000 {
        10_000_000
    } else if value < -10_000_000 {
        -10_000_000
    } else {
        value as i32
    }
}

/// Days in a month.
pub const fn month_len(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days of a month that fall on weekdays of a mask (bit 0 is Sunday), as bits from 1 on; bits past the month's end
/// are undefined.
pub(crate) const fn weekdays_of_month(weekdays: u8, first_weekday: u32) -> u32 {
    // The mask rotated so that it begins with the weekday of the first.
    let turned = (weekdays as u64 | (weekdays as u64) << 7) >> first_weekday & 0x7f;
    // The rotated week repeated five times.
    ((turned * 0x1020_4081) << 1) as u32
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ymd { year, month, day } = self.ymd();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Debug for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{}", self.day(), TimeOfDay(self.second_of_day()))
    }
}

impl fmt::Debug for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A time of day: seconds since midnight, below 86,400.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(pub u32);

impl TimeOfDay {
    /// Parses `18:00` or `18:00:30`.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let wrong = || not_a(text, "a time of day").hint("write hours and minutes, such as 18:00 or 18:00:30");
        let parts: Vec<&str> = text.split(':').collect();
        if !(2..=3).contains(&parts.len()) {
            return Err(wrong());
        }
        let mut total = 0;
        for (part, (limit, each)) in parts.iter().zip([(24, 3600), (60, 60), (60, 1)]) {
            let digits = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
            let value: u32 = part.parse().ok().filter(|value| digits && *value < limit).ok_or_else(wrong)?;
            total += value * each;
        }
        Ok(Self(total))
    }
}

impl TimeOfDay {
    /// `18:00:00`, with seconds even if they are zero.
    pub fn with_seconds(self) -> String {
        format!("{:02}:{:02}:{:02}", self.0 / 3600, self.0 / 60 % 60, self.0 % 60)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 3600, self.0 / 60 % 60)?;
        match self.0 % 60 {
            0 => Ok(()),
            seconds => write!(f, ":{seconds:02}"),
        }
    }
}

impl fmt::Debug for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::{Date, date};

    use super::*;

    #[test]
    fn agrees_with_jiff_on_every_day() {
        let epoch = date(1970, 1, 1);
        for number in -40_000..80_000 {
            let day = Day(number);
            let Ymd { year, month, day: of_month } = day.ymd();
            let expected: Date = epoch.checked_add(jiff::Span::new().days(number)).expect("in range");
            let theirs = (i32::from(expected.year()), expected.month(), expected.day());
            assert_eq!((year, month as i8, of_month as i8), theirs);
            assert_eq!(Day::from_ymd(year, month, of_month), day);
            assert_eq!(day.weekday() as i8, expected.weekday().to_sunday_zero_offset());
            assert_eq!(day.iso_week() as i8, expected.iso_week_date().week());
            assert_eq!(month_len(year, month) as i8, expected.days_in_month());
        }
    }

    #[test]
    fn reads_dates_and_times() {
        assert_eq!(Day::parse("2024-02-29").map(|day| day.to_string()), Ok("2024-02-29".into()));
        for bad in ["2023-02-29", "2023-13-01", "2023-1-01", "23-01-01", "2023-01-01-", "", "2023-01-+1"] {
            assert!(Day::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(TimeOfDay::parse("18:00").map(|time| time.to_string()), Ok("18:00".into()));
        assert_eq!(TimeOfDay::parse("9:05:07").map(|time| time.to_string()), Ok("09:05:07".into()));
        for bad in ["24:00", "18", "18:60", "18:00:60", "1:2:3:4", "+1:00", "-1:00", ""] {
            assert!(TimeOfDay::parse(bad).is_err(), "{bad}");
        }
    }
}
