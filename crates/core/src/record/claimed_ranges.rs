//! Which occurrences of a schedule were claimed, as ranges of time. They outlive the runs, so that after the clock was
//! set back no occurrence starts a second time, even if its run is no longer kept. A single high-water mark would not
//! do: a clock that is wrong by years for a minute would keep the schedule from running for years.

use std::fmt;

use cronhold_schedule::{Instant, TextError};

/// Separates the two ends of a range, and two ranges, in the stored text.
const TO: char = '/';
const AND: char = ' ';

/// Ranges of claimed occurrences, the earliest first. They neither overlap nor touch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimedRanges(Vec<(Instant, Instant)>);

impl ClaimedRanges {
    /// The most ranges. Beyond it the two earliest become one: what lies between them counts as claimed too.
    pub const MAX: usize = 8;

    /// Adds a range.
    pub fn insert(&mut self, from: Instant, to: Instant) {
        let touches = |range: &(Instant, Instant)| range.0 <= to && from <= range.1;
        let mut merged = (from, to);
        for (first, last) in self.0.extract_if(.., |range| touches(range)) {
            merged = (merged.0.min(first), merged.1.max(last));
        }
        let place = self.0.partition_point(|range| range.0 < merged.0);
        self.0.insert(place, merged);
        if self.0.len() > Self::MAX {
            let (first, _) = self.0.remove(0);
            self.0[0].0 = first;
        }
    }

    /// The last claimed time of the range that an occurrence is in; `None` if it was not claimed.
    pub fn claimed_until(&self, at: Instant) -> Option<Instant> {
        self.0.iter().find(|(from, to)| *from <= at && at <= *to).map(|(_, to)| *to)
    }

    /// Parses the stored text.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let wrong = || TextError::new(0..text.len(), format!("`{text}` is not a list of ranges"));
        let micros = |text: &str| text.parse().map(Instant::from_micros).map_err(|_| wrong());
        let range = |range: &str| {
            let (from, to) = range.split_once(TO).ok_or_else(wrong)?;
            Ok((micros(from)?, micros(to)?))
        };
        text.split(AND).filter(|range| !range.is_empty()).map(range).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Times in microseconds since 1970: `1767571200000000/1767571260000000`.
impl fmt::Display for ClaimedRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (from, to)) in self.0.iter().enumerate() {
            if index > 0 {
                write!(f, "{AND}")?;
            }
            write!(f, "{}{TO}{}", from.micros(), to.micros())?;
        }
        Ok(())
    }
}

cronhold_schedule::stored_as_text!(ClaimedRanges);

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(of: &[(i64, i64)]) -> ClaimedRanges {
        let mut ranges = ClaimedRanges::default();
        of.iter().for_each(|(from, to)| ranges.insert(Instant::from_micros(*from), Instant::from_micros(*to)));
        ranges
    }

    #[test]
    fn ranges_that_touch_become_one_and_the_earliest_ones_give_way() {
        for (inserted, expected) in [
            (vec![], ""),
            (vec![(5, 5)], "5/5"),
            (vec![(5, 5), (5, 9), (9, 12)], "5/12"),
            (vec![(20, 30), (1, 2), (10, 12)], "1/2 10/12 20/30"),
            (vec![(20, 30), (1, 2), (10, 12), (2, 25)], "1/30"),
            ((0..10).map(|n| (n * 10, n * 10 + 1)).collect(), "0/21 30/31 40/41 50/51 60/61 70/71 80/81 90/91"),
        ] {
            let found = ranges(&inserted);
            assert_eq!(found.to_string(), expected, "{inserted:?}");
            assert_eq!(ClaimedRanges::parse(expected), Ok(found));
        }
        let until = |at| ranges(&[(1, 3), (7, 9)]).claimed_until(Instant::from_micros(at)).map(Instant::micros);
        assert_eq!([0, 1, 3, 4, 8, 10].map(until), [None, Some(3), Some(3), None, Some(9), None]);
        for wrong in ["5", "5/", "x/5", "5/6,7/8"] {
            assert!(ClaimedRanges::parse(wrong).is_err(), "{wrong}");
        }
    }
}
