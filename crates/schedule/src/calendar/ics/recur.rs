//! Expands a recurrence rule to days. Each part of a rule is a predicate on a day. The search goes month by month and
//! skips months that cannot match.

use super::super::bitmap::LAST_DAY;
use super::rule::{RecurrenceFrequency, RecurrenceRule};
use crate::civil::{Day, Ymd, month_len};

/// Steps that may be taken for one file: enough for a thousand daily rules over a century.
pub(super) const STEPS_MAX: u64 = 50_000_000;

/// What remains of `STEPS_MAX`.
#[derive(Debug)]
pub(super) struct StepBudget {
    left: u64,
}

/// The file exceeds `STEPS_MAX`.
#[derive(Debug)]
pub(super) struct TooManySteps;

impl StepBudget {
    pub(super) fn new() -> Self {
        Self { left: STEPS_MAX }
    }

    pub(super) fn take(&mut self, steps: u64) -> Result<(), TooManySteps> {
        self.left = self.left.checked_sub(steps).ok_or(TooManySteps)?;
        Ok(())
    }
}

/// Calls `found` with each day of the rule in order, from `start` to `last`. As RFC 5545 requires, the start is always
/// the first occurrence, even if the rule does not match it.
pub(super) fn expand(
    rule: &RecurrenceRule,
    start: Day,
    last: Day,
    steps: &mut StepBudget,
    mut found: impl FnMut(Day),
) -> Result<(), TooManySteps> {
    let last = last.min(LAST_DAY);
    if start > last {
        return Ok(());
    }
    found(start);
    let mut left = rule.count.map_or(u32::MAX, |count| count - 1);
    let walk = RuleExpansion::new(rule, start);
    let Ymd { mut year, mut month, .. } = start.ymd();
    loop {
        let first = Day::from_ymd(year, month, 1);
        if first > last || left == 0 {
            return Ok(());
        }
        steps.take(1)?;
        if walk.has_month(year, month) {
            let len = month_len(year, month);
            steps.take(u64::from(len))?;
            for of_month in 1..=len {
                let day = first.plus(of_month.cast_signed() - 1);
                if day > start && day <= last && left > 0 && walk.has_day(day, year, month, of_month) {
                    found(day);
                    left -= 1;
                }
            }
        }
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    }
}

/// A rule completed with the values that it leaves open and takes from its start.
struct RuleExpansion<'a> {
    rule: &'a RecurrenceRule,
    start: Day,
    start_year: i32,
    start_month: u32,
    months: u32,
    month_days: u32,
    weekdays: u8,
    limits_month_days: bool,
    limits_weekdays: bool,
}

impl<'a> RuleExpansion<'a> {
    fn new(rule: &'a RecurrenceRule, start: Day) -> Self {
        let Ymd { year, month, day } = start.ymd();
        let mut walk = Self {
            rule,
            start,
            start_year: year,
            start_month: month,
            months: rule.months,
            month_days: rule.month_days,
            weekdays: rule.weekdays,
            limits_month_days: rule.has_month_days(),
            limits_weekdays: rule.has_weekdays(),
        };
        let open = !walk.limits_month_days && !walk.limits_weekdays;
        match rule.freq {
            RecurrenceFrequency::Weekly if open => {
                walk.weekdays = 1 << start.weekday();
                walk.limits_weekdays = true;
            }
            RecurrenceFrequency::Monthly | RecurrenceFrequency::Yearly if open => {
                walk.month_days = 1 << day;
                walk.limits_month_days = true;
                if rule.freq == RecurrenceFrequency::Yearly && rule.months == 0 {
                    walk.months = 1 << month;
                }
            }
            _ => {}
        }
        walk
    }

    fn has_month(&self, year: i32, month: u32) -> bool {
        if self.months != 0 && self.months >> month & 1 == 0 {
            return false;
        }
        let years = year - self.start_year;
        match self.rule.freq {
            RecurrenceFrequency::Daily | RecurrenceFrequency::Weekly => true,
            RecurrenceFrequency::Monthly => {
                (years * 12 + month.cast_signed() - self.start_month.cast_signed()) % self.rule.interval == 0
            }
            RecurrenceFrequency::Yearly => years % self.rule.interval == 0,
        }
    }

    /// Whether a day of a month that matches does so itself.
    fn has_day(&self, day: Day, year: i32, month: u32, of_month: u32) -> bool {
        let on_step = match self.rule.freq {
            RecurrenceFrequency::Daily => (day.0 - self.start.0) % self.rule.interval == 0,
            RecurrenceFrequency::Weekly => (self.week(day) - self.week(self.start)) % self.rule.interval == 0,
            RecurrenceFrequency::Monthly | RecurrenceFrequency::Yearly => true,
        };
        let from_end = month_len(year, month) - of_month + 1;
        let on_month_day = !self.limits_month_days
            || (self.month_days >> of_month | self.rule.month_days_from_end >> from_end) & 1 == 1;
        on_step && on_month_day && (!self.limits_weekdays || self.has_weekday(day, year, of_month, from_end))
    }

    fn has_weekday(&self, day: Day, year: i32, of_month: u32, from_end: u32) -> bool {
        let weekday = day.weekday();
        if self.weekdays >> weekday & 1 == 1 {
            return true;
        }
        // In a monthly rule, numbers count within the month; otherwise within the year.
        let (position, position_from_end) = if self.rule.freq == RecurrenceFrequency::Monthly || self.rule.months != 0 {
            (of_month, from_end)
        } else {
            let of_year = day.0 - Day::from_ymd(year, 1, 1).0 + 1;
            let from_end = Day::from_ymd(year, 12, 31).0 - day.0 + 1;
            (of_year.cast_unsigned(), from_end.cast_unsigned())
        };
        let nth = self.rule.nth[weekday as usize] >> position.div_ceil(7);
        let nth_from_end = self.rule.nth_from_end[weekday as usize] >> position_from_end.div_ceil(7);
        (nth | nth_from_end) & 1 == 1
    }

    /// Week number of a day, counted from an arbitrary week before 1970.
    fn week(&self, day: Day) -> i32 {
        // Day 0 is a Thursday, four days into a week that begins on Sunday.
        (day.0 + 4 - self.rule.week_start.cast_signed()).div_euclid(7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The days of a rule, written short: a year or a month is left out when it repeats.
    fn days(start: &str, rule: &str) -> String {
        let rule = RecurrenceRule::parse(rule).expect(rule);
        let last = rule.until.as_ref().map_or(LAST_DAY, |until| until.local.day());
        let mut text = String::new();
        let mut previous = None;
        let found = |day: Day| {
            let Ymd { year, month, .. } = day.ymd();
            let full = day.to_string();
            let blank = if text.is_empty() { "" } else { " " };
            let repeated = match previous {
                Some((y, m)) if y == year && m == month => 8,
                Some((y, _)) if y == year => 5,
                _ => 0,
            };
            text.push_str(&format!("{blank}{}", &full[repeated..]));
            previous = Some((year, month));
        };
        expand(&rule, Day::parse(start).expect(start), last, &mut StepBudget::new(), found).expect("within the limit");
        text
    }

    /// Compares the days of rules. The days of an endless rule are compared up to a `…`.
    fn check(table: &[(&str, &str, &str)]) {
        for (start, rule, expected) in table {
            let days = days(start, rule);
            match expected.strip_suffix('…') {
                Some(expected) => assert_eq!(days.get(..expected.len()), Some(expected), "{start} {rule}"),
                None => assert_eq!(days, *expected, "{start} {rule}"),
            }
        }
    }

    #[test]
    fn rules_of_rfc_5545() {
        check(&[
            ("1997-09-02", "FREQ=DAILY;COUNT=3", "1997-09-02 03 04"),
            ("1997-09-02", "FREQ=DAILY;INTERVAL=10;COUNT=5", "1997-09-02 12 22 10-02 12"),
            ("1998-01-01", "FREQ=YEARLY;UNTIL=19980103;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA", "1998-01-01 02 03"),
            ("1998-01-31", "FREQ=DAILY;BYMONTH=1;COUNT=2", "1998-01-31 1999-01-01"),
            ("1997-09-02", "FREQ=WEEKLY;COUNT=3", "1997-09-02 09 16"),
            ("1997-09-02", "FREQ=WEEKLY;INTERVAL=2;WKST=SU", "1997-09-02 16 30 10-14 28 11-11 …"),
            ("1997-09-02", "FREQ=WEEKLY;COUNT=6;WKST=SU;BYDAY=TU,TH", "1997-09-02 04 09 11 16 18"),
            ("1997-09-01", "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=MO,WE,FR", "1997-09-01 03 05 15 17 19 …"),
            // The same rule with another first day of the week.
            ("1997-08-05", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "1997-08-05 10 19 24"),
            ("1997-08-05", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "1997-08-05 17 19 31"),
            ("1997-09-05", "FREQ=MONTHLY;COUNT=4;BYDAY=1FR", "1997-09-05 10-03 11-07 12-05"),
            ("1997-09-07", "FREQ=MONTHLY;INTERVAL=2;COUNT=5;BYDAY=1SU,-1SU", "1997-09-07 28 11-02 30 1998-01-04"),
            ("1997-09-22", "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO", "1997-09-22 10-20 11-17 12-22 1998-01-19 02-16"),
            ("1997-09-28", "FREQ=MONTHLY;BYMONTHDAY=-3", "1997-09-28 10-29 11-28 12-29 1998-01-29 02-26 …"),
            ("1997-09-02", "FREQ=MONTHLY;COUNT=4;BYMONTHDAY=2,15", "1997-09-02 15 10-02 15"),
            ("1997-09-30", "FREQ=MONTHLY;COUNT=5;BYMONTHDAY=1,-1", "1997-09-30 10-01 31 11-01 30"),
            ("1997-09-10", "FREQ=MONTHLY;INTERVAL=18;COUNT=4;BYMONTHDAY=10,11,12", "1997-09-10 11 12 1999-03-10"),
            ("1997-06-10", "FREQ=YEARLY;COUNT=4;BYMONTH=6,7", "1997-06-10 07-10 1998-06-10 07-10"),
            ("1997-03-10", "FREQ=YEARLY;INTERVAL=2;COUNT=4;BYMONTH=1,2,3", "1997-03-10 1999-01-10 02-10 03-10"),
            ("1997-05-19", "FREQ=YEARLY;BYDAY=20MO", "1997-05-19 1998-05-18 1999-05-17 …"),
            ("1997-03-13", "FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "1997-03-13 20 27 1998-03-05 12 …"),
            ("1998-02-13", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "1998-02-13 03-13 11-13 1999-08-13 2000-10-13 …"),
            (
                "1997-09-13",
                "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
                "1997-09-13 10-11 11-08 12-13 1998-01-10 …",
            ),
            (
                "1996-11-05",
                "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
                "1996-11-05 2000-11-07 2004-11-02 …",
            ),
            ("2007-01-15", "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "2007-01-15 30 02-15 03-15 30"),
        ]);
    }

    #[test]
    fn rules_of_real_calendars() {
        check(&[
            // Thanksgiving, Memorial Day, the last Friday of each month.
            (
                "2024-11-28",
                "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH",
                "2024-11-28 2025-11-27 2026-11-26 2027-11-25 2028-11-23 …",
            ),
            ("2024-05-27", "FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO", "2024-05-27 2025-05-26 2026-05-25 …"),
            ("2026-01-30", "FREQ=MONTHLY;BYDAY=-1FR", "2026-01-30 02-27 03-27 04-24 05-29 …"),
            // Leap days, over the year 2100 that has none.
            ("2088-02-29", "FREQ=YEARLY", "2088-02-29 2092-02-29 2096-02-29"),
            ("2026-01-31", "FREQ=MONTHLY;COUNT=4", "2026-01-31 03-31 05-31 07-31"),
            ("2026-01-01", "FREQ=YEARLY;COUNT=2", "2026-01-01 2027-01-01"),
            // The last Monday of the year, and a day in every month of it.
            ("2026-12-28", "FREQ=YEARLY;BYDAY=-1MO", "2026-12-28 2027-12-27 2028-12-25 …"),
            ("2026-01-13", "FREQ=YEARLY;BYMONTHDAY=13;COUNT=3", "2026-01-13 02-13 03-13"),
            // Every Monday and the first Friday.
            ("2026-02-02", "FREQ=MONTHLY;BYDAY=MO,1FR;COUNT=7", "2026-02-02 06 09 16 23 03-02 06"),
            // The start counts although the rule does not match it.
            ("2026-01-01", "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;COUNT=2", "2026-01-01 11-26"),
            ("1601-01-01", "FREQ=YEARLY;INTERVAL=400;BYMONTH=1;BYMONTHDAY=1", "1601-01-01 2001-01-01"),
            ("2026-01-01", "FREQ=DAILY;INTERVAL=999999999", "2026-01-01"),
            ("2026-01-05", "FREQ=WEEKLY;INTERVAL=999999999", "2026-01-05"),
            ("2026-01-05", "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", "2026-01-05"),
            ("2026-01-05", "FREQ=DAILY;BYDAY=MO,TU;BYMONTHDAY=12,13,14", "2026-01-05 12 13 04-13 …"),
        ]);
    }

    #[test]
    fn expansion_stops_at_the_step_limit() {
        let rule = RecurrenceRule::parse("FREQ=DAILY").expect("a rule");
        let mut steps = StepBudget::new();
        let start = Day::from_ymd(0, 1, 1);
        let files = (0..1_000).take_while(|_| expand(&rule, start, LAST_DAY, &mut steps, |_| {}).is_ok()).count();
        assert_eq!(files, 63);
        assert_eq!(days("9999-12-31", "FREQ=DAILY"), "");
    }
}
