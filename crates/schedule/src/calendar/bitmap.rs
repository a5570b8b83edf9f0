//! One bit for every day that a schedule can run on. The bitmap takes six kilobytes and every query is a scan over
//! machine words, so a calendar from files costs no more than one of weekdays.

use crate::civil::Day;

/// The first day of every calendar: 1970-01-01.
pub const FIRST_DAY: Day = Day(0);

/// The last day of every calendar: 2100-12-31.
pub const LAST_DAY: Day = Day::from_ymd(2100, 12, 31);

const DAYS: usize = LAST_DAY.0 as usize + 1;
const WORDS: usize = DAYS.div_ceil(64);

/// A set of days between `FIRST_DAY` and `LAST_DAY`.
///
/// Invariant: bits outside this range are zero.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct DayBitmap {
    words: Box<[u64]>,
}

impl DayBitmap {
    /// An empty set.
    pub(super) fn new() -> Self {
        Self { words: vec![0; WORDS].into_boxed_slice() }
    }

    /// Every day whose weekday is in the mask (bit 0 is Sunday).
    pub(super) fn of_weekdays(mask: u8) -> Self {
        // A word covers 64 days, nine weeks and one day, so the pattern of words repeats after seven.
        let mut pattern = [0_u64; 7];
        for number in 0..7 * 64 {
            let day = FIRST_DAY.plus(number);
            let BitPosition { word, bit } = place(day);
            pattern[word] |= u64::from(mask >> day.weekday() & 1) << bit;
        }
        let mut words: Box<[u64]> = pattern.iter().copied().cycle().take(WORDS).collect();
        words[WORDS - 1] &= u64::MAX >> (63 - place(LAST_DAY).bit);
        Self { words }
    }

    /// Adds the days from `first` to `last`, clipped to `FIRST_DAY`..=`LAST_DAY`.
    pub(super) fn insert(&mut self, first: Day, last: Day) {
        let (first, last) = (first.max(FIRST_DAY), last.min(LAST_DAY));
        if first > last {
            return;
        }
        let (first, last) = (place(first), place(last));
        for index in first.word..=last.word {
            let mut bits = u64::MAX;
            if index == first.word {
                bits &= u64::MAX << first.bit;
            }
            if index == last.word {
                bits &= u64::MAX >> (63 - last.bit);
            }
            self.words[index] |= bits;
        }
    }

    /// Whether the day is in the set.
    pub(super) fn contains(&self, day: Day) -> bool {
        if day < FIRST_DAY || day > LAST_DAY {
            return false;
        }
        let BitPosition { word, bit } = place(day);
        self.words[word] >> bit & 1 == 1
    }

    /// The 31 days from `first` on, which must be between `FIRST_DAY` and `LAST_DAY`, as bits 1–31.
    pub(super) fn month_days(&self, first: Day) -> u32 {
        let BitPosition { word, bit } = place(first);
        let next = self.words.get(word + 1).copied().unwrap_or(0);
        let both = u128::from(next) << 64 | u128::from(self.words[word]);
        ((both >> bit) << 1) as u32
    }

    /// The `n`-th day of the set after `day`, which itself does not count. `n` is at least 1.
    pub(super) fn nth_after(&self, day: Day, mut n: u32) -> Option<Day> {
        let from = day.plus(1).max(FIRST_DAY);
        if from > LAST_DAY {
            return None;
        }
        let from = place(from);
        for index in from.word..WORDS {
            let mut bits = self.words[index];
            if index == from.word {
                bits &= u64::MAX << from.bit;
            }
            if n <= bits.count_ones() {
                for _ in 1..n {
                    bits &= bits - 1;
                }
                return Some(day_at(index, bits.trailing_zeros()));
            }
            n -= bits.count_ones();
        }
        None
    }

    /// The `n`-th day of the set before `day`, which itself does not count. `n` is at least 1.
    pub(super) fn nth_before(&self, day: Day, mut n: u32) -> Option<Day> {
        let from = day.plus(-1).min(LAST_DAY);
        if from < FIRST_DAY {
            return None;
        }
        let from = place(from);
        for index in (0..=from.word).rev() {
            let mut bits = self.words[index];
            if index == from.word {
                bits &= u64::MAX >> (63 - from.bit);
            }
            if n <= bits.count_ones() {
                for _ in 1..n {
                    bits ^= 1 << (63 - bits.leading_zeros());
                }
                return Some(day_at(index, 63 - bits.leading_zeros()));
            }
            n -= bits.count_ones();
        }
        None
    }

    /// Combines two sets word by word. The operator must map two zero bits to zero.
    pub(super) fn combined(&self, other: &Self, operator: impl Fn(u64, u64) -> u64) -> Self {
        Self { words: self.words.iter().zip(&other.words).map(|(a, b)| operator(*a, *b)).collect() }
    }

    /// How many days are in the set.
    pub(super) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }
}

#[derive(Clone, Copy)]
struct BitPosition {
    word: usize,
    bit: u32,
}

/// The word and bit of a day. The day must be between `FIRST_DAY` and `LAST_DAY`.
fn place(day: Day) -> BitPosition {
    let index = day.0.cast_unsigned();
    BitPosition { word: (index / 64) as usize, bit: index % 64 }
}

fn day_at(word: usize, bit: u32) -> Day {
    // A word's index is below 748, so the day fits.
    Day(word as i32 * 64 + bit.cast_signed())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ends_at_the_last_day() {
        assert_eq!((DAYS, WORDS), (47_847, 748));
        let all = DayBitmap::of_weekdays(0x7f);
        assert_eq!(all.count(), 47_847);
        assert_eq!(all.nth_after(LAST_DAY, 1), None);
        assert_eq!(all.nth_before(FIRST_DAY, 1), None);
        assert_eq!(all.nth_after(Day(i32::MIN), 47_847), Some(LAST_DAY));
        assert_eq!(all.nth_before(Day(i32::MAX), 47_847), Some(FIRST_DAY));
        assert_eq!(all.nth_after(Day(i32::MIN), u32::MAX), None);
        assert!(!all.contains(Day(-1)) && !all.contains(LAST_DAY.plus(1)) && !all.contains(Day(i32::MAX)));
    }

    #[test]
    fn ranges_are_clipped() {
        for (first, last, count) in
            [(-5, 2, 3), (60, 70, 11), (0, 200, 201), (47_840, 60_000, 7), (5, 4, 0), (-9, -1, 0), (i32::MIN, -1, 0)]
        {
            let mut bitmap = DayBitmap::new();
            bitmap.insert(Day(first), Day(last));
            assert_eq!(bitmap.count(), count, "{first} to {last}");
        }
    }

    #[test]
    fn agrees_with_a_sorted_set() {
        let numbers: BTreeSet<i32> = (0..2_000).map(|n| n * n % 47_847).chain([63, 64, 127, 128, 47_846]).collect();
        let mut bitmap = DayBitmap::new();
        for number in &numbers {
            bitmap.insert(Day(*number), Day(*number));
        }
        for day in (-3..47_860).step_by(7) {
            for n in [1_u32, 2, 5, 70] {
                let after = numbers.range(day + 1..).nth(n as usize - 1).map(|n| Day(*n));
                let before = numbers.range(..day).rev().nth(n as usize - 1).map(|n| Day(*n));
                assert_eq!(bitmap.nth_after(Day(day), n), after, "{n} after {day}");
                assert_eq!(bitmap.nth_before(Day(day), n), before, "{n} before {day}");
            }
            assert_eq!(bitmap.contains(Day(day)), numbers.contains(&day));
        }
    }
}
