//! The two representations of a set of days, weekday mask and bitmap, behind one interface. Most schedules name only
//! weekdays and must not cost six kilobytes each.

use std::sync::Arc;

use super::bitmap::{DayBitmap, FIRST_DAY, LAST_DAY};
use super::weekdays::WEEK;
use crate::civil::{Day, weekdays_of_month};

/// A set of days between `FIRST_DAY` and `LAST_DAY`.
#[derive(Clone)]
pub(super) enum DaySet {
    /// Every day whose weekday is in the mask (bit 0 is Sunday).
    Weekdays(u8),
    /// Exactly these days.
    Listed(Arc<DayBitmap>),
}

/// How two sets are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetOperator {
    /// Union: days that are in either set.
    Or,
    /// Difference: days of the first set that are not in the second.
    Minus,
    /// Intersection: days that are in both sets.
    And,
}

impl SetOperator {
    /// Applies the operator to sets stored as bits of a word.
    fn apply(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Or => a | b,
            Self::Minus => a & !b,
            Self::And => a & b,
        }
    }
}

impl DaySet {
    pub(super) const ALL: Self = Self::Weekdays(WEEK);
    pub(super) const NONE: Self = Self::Weekdays(0);

    pub(super) fn contains(&self, day: Day) -> bool {
        match self {
            Self::Weekdays(mask) => (FIRST_DAY..=LAST_DAY).contains(&day) && mask >> day.weekday() & 1 == 1,
            Self::Listed(bitmap) => bitmap.contains(day),
        }
    }

    /// The days of the month that begins with `first`, as bits from 1 on.
    pub(super) fn month_days(&self, first: Day) -> u32 {
        match self {
            _ if first < FIRST_DAY || first > LAST_DAY => 0,
            Self::Weekdays(mask) => weekdays_of_month(*mask, first.weekday()),
            Self::Listed(bitmap) => bitmap.month_days(first),
        }
    }

    /// The `n`-th day of the set after `day`, which itself does not count. `n` is at least 1.
    pub(super) fn nth_after(&self, day: Day, n: u32) -> Option<Day> {
        match self {
            Self::Weekdays(mask) => {
                let day = day.clamp(FIRST_DAY.plus(-1), LAST_DAY);
                nth_weekday(*mask, day, n, 1).filter(|found| *found <= LAST_DAY)
            }
            Self::Listed(bitmap) => bitmap.nth_after(day, n),
        }
    }

    /// The `n`-th day of the set before `day`, which itself does not count. `n` is at least 1.
    pub(super) fn nth_before(&self, day: Day, n: u32) -> Option<Day> {
        match self {
            Self::Weekdays(mask) => {
                let day = day.clamp(FIRST_DAY, LAST_DAY.plus(1));
                nth_weekday(*mask, day, n, -1).filter(|found| *found >= FIRST_DAY)
            }
            Self::Listed(bitmap) => bitmap.nth_before(day, n),
        }
    }

    /// Combines this set with another.
    pub(super) fn combined(&self, operator: SetOperator, other: &Self) -> Self {
        match (self, other) {
            (Self::Weekdays(a), Self::Weekdays(b)) => {
                Self::Weekdays(operator.apply(u64::from(*a), u64::from(*b)) as u8)
            }
            _ => Self::Listed(Arc::new(self.bitmap().combined(&other.bitmap(), |a, b| operator.apply(a, b)))),
        }
    }

    fn bitmap(&self) -> Arc<DayBitmap> {
        match self {
            Self::Weekdays(mask) => Arc::new(DayBitmap::of_weekdays(*mask)),
            Self::Listed(bitmap) => Arc::clone(bitmap),
        }
    }
}

/// The `n`-th day of the mask after `day` (`direction` 1) or before it (-1). Whole weeks are skipped, so the search
/// takes at most 49 steps for any `n`. The result may lie outside `FIRST_DAY`..=`LAST_DAY`.
fn nth_weekday(mask: u8, day: Day, n: u32, direction: i32) -> Option<Day> {
    let n = n.cast_signed();
    let per_week = mask.count_ones().cast_signed();
    // No calendar has that many days. The check also rules out overflow in the sums below.
    if per_week == 0 || !(1..=LAST_DAY.0 + 1).contains(&n) {
        return None;
    }
    let mut found = day.plus((n - 1) / per_week * 7 * direction);
    for _ in 0..=(n - 1) % per_week {
        found = (1..=7).map(|step| found.plus(step * direction)).find(|day| mask >> day.weekday() & 1 == 1)?;
    }
    Some(found)
}

impl PartialEq for DaySet {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Weekdays(a), Self::Weekdays(b)) => a == b,
            _ => self.bitmap() == other.bitmap(),
        }
    }
}

impl Eq for DaySet {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekdays_agree_with_their_bitmap() {
        for mask in [0, 1, 0b011_1110, 0b110_0011, 0b010_0100, WEEK] {
            let weekdays = DaySet::Weekdays(mask);
            let listed = DaySet::Listed(weekdays.bitmap());
            assert!(weekdays == listed);
            let edges = [i32::MIN, -400, -1, 0, 1, 5, 20_000, 47_840, 47_846, 47_847, 48_300, i32::MAX];
            for day in edges.map(Day) {
                assert_eq!(weekdays.contains(day), listed.contains(day), "{mask:07b} {}", day.0);
                for n in [1, 2, 3, 6, 7, 8, 30, 5_000, 47_847, u32::MAX] {
                    assert_eq!(weekdays.nth_after(day, n), listed.nth_after(day, n), "{mask:07b} {} +{n}", day.0);
                    assert_eq!(weekdays.nth_before(day, n), listed.nth_before(day, n), "{mask:07b} {} -{n}", day.0);
                }
            }
        }
    }
}
