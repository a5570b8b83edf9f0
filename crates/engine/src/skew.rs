//! How far the system clock of a node differs from the time of the store. Nodes that share a store do not decide by that
//! clock, but people and programs read it, so a wrong clock is reported.

use cronhold_schedule::{Instant, Span};

/// A clock that is further off than this is reported.
const SKEW_MAX: Span = Span::from_secs(1);
/// A clock that was reported counts as right again below this, so that one near the limit is not reported repeatedly.
const SKEW_OVER: Span = Span::from_millis(500);
/// The node's record shows a new value only if it differs from the old one by more than this.
const SKEW_STEP: Span = Span::from_millis(20);

/// A measurement of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skew {
    /// By how many microseconds the clock is ahead; negative if it is behind.
    pub(crate) ahead: i64,
    /// The largest possible error of the measurement.
    error: Span,
}

impl Skew {
    /// Compares the store's time with the clock. The store's time was requested and received at two uptimes, and the
    /// clock was read when it was received.
    pub(crate) fn new(requested: Span, received: Span, time: Instant, clock: Instant) -> Self {
        let half = Span::from_micros(received.minus(requested).micros() / 2);
        let ahead = clock.micros().saturating_sub(time.plus(half).micros());
        Self { ahead, error: half }
    }

    /// The value for the node's record: the value that is there, unless it is clearly wrong. Otherwise every heartbeat
    /// would change the record, and every node would reload it.
    pub(crate) fn published(&self, before: Option<i64>) -> i64 {
        let is_near = |before: &i64| before.abs_diff(self.ahead) <= SKEW_STEP.max(self.error).micros();
        before.filter(is_near).unwrap_or(self.ahead)
    }

    /// How far the clock is off, in either direction.
    pub(crate) fn size(&self) -> Span {
        Span::from_micros(self.ahead.unsigned_abs())
    }
}

/// Whether a clock was reported to be off.
#[derive(Debug, Default)]
pub(crate) struct SkewWatch {
    is_off: bool,
}

impl SkewWatch {
    /// Records a measurement. Returns whether the clock is off now, if that has changed.
    pub(crate) fn record(&mut self, skew: Skew) -> Option<bool> {
        let (least, most) = (skew.size().minus(skew.error), skew.size().plus(skew.error));
        let is_off = if self.is_off { most >= SKEW_OVER } else { least > SKEW_MAX };
        (std::mem::replace(&mut self.is_off, is_off) != is_off).then_some(is_off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a watch returns for clocks that are ahead by some milliseconds, with an error in milliseconds.
    fn reported(measured: &[(i64, u64)]) -> Vec<Option<bool>> {
        let mut watch = SkewWatch::default();
        let skew = |(ahead, error): &(i64, u64)| Skew { ahead: ahead * 1_000, error: Span::from_millis(*error) };
        measured.iter().map(|measured| watch.record(skew(measured))).collect()
    }

    #[test]
    fn wrong_clock_is_reported_once_and_when_it_is_right_again() {
        assert_eq!(
            reported(&[(1_000, 0), (-1_001, 0), (2_000, 0), (600, 0), (-499, 0), (0, 0)]),
            [None, Some(true), None, None, Some(false), None]
        );
    }

    #[test]
    fn inexact_measurement_changes_nothing() {
        assert_eq!(
            reported(&[(1_500, 600), (1_500, 100), (400, 200), (400, 50)]),
            [None, Some(true), None, Some(false)]
        );
    }

    #[test]
    fn published_value_changes_only_if_it_is_clearly_wrong() {
        let published = |ahead: i64, error: u64, before: Option<i64>| {
            let error = Span::from_millis(error);
            Skew { ahead: ahead * 1_000, error }.published(before.map(|before| before * 1_000)) / 1_000
        };
        assert_eq!(published(7, 0, None), 7);
        assert_eq!((published(27, 0, Some(7)), published(28, 0, Some(7)), published(-14, 0, Some(7))), (7, 28, -14));
        assert_eq!((published(100, 200, Some(7)), published(300, 200, Some(7))), (7, 300));
    }

    #[test]
    fn store_time_is_taken_as_of_half_the_round_trip() {
        let time = Instant::from_secs(1_000_000);
        let (requested, received) = (Span::from_millis(100), Span::from_millis(300));
        let behind = Skew::new(requested, received, time, time.minus(Span::from_millis(400)));
        assert_eq!(behind, Skew { ahead: -500_000, error: Span::from_millis(100) });
        assert_eq!(behind.size(), Span::from_millis(500));
    }
}
