//! How far the clock on a node's wall is from the time of the store. Where nodes share a store nothing goes by that clock,
//! but people read it, and so do programs: they should know when it is wrong.

use cronhold_schedule::{Instant, Span};

/// A clock that is further off than this is told of.
const SKEW_MAX: Span = Span::from_secs(1);
/// It counts as right again when it is less off than this, so that one at the limit is not told of again and again.
const SKEW_OVER: Span = Span::from_millis(500);
/// Others are told of it anew when it is another by more than this.
const SKEW_STEP: Span = Span::from_millis(20);

/// How far a clock is off, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skew {
    /// By how many microseconds it is ahead; less than zero, when it is behind.
    pub(crate) ahead: i64,
    /// It is wrong by this at most.
    error: Span,
}

impl Skew {
    /// What a clock said when the store was heard, which was asked for its time before that.
    pub(crate) fn new(asked: Span, heard: Span, time: Instant, wall: Instant) -> Self {
        let half = Span::from_micros(heard.minus(asked).micros() / 2);
        let ahead = wall.micros().saturating_sub(time.plus(half).micros());
        Self { ahead, error: half }
    }

    /// What others are told: what they know already, unless that is wrong by more than anybody cares about. Otherwise there
    /// would be something new in every beat, and every node would look at it.
    pub(crate) fn told(&self, before: Option<i64>) -> i64 {
        let is_near = |before: &i64| before.abs_diff(self.ahead) <= SKEW_STEP.max(self.error).micros();
        before.filter(is_near).unwrap_or(self.ahead)
    }

    /// How far it is off, in either direction.
    pub(crate) fn size(&self) -> Span {
        Span::from_micros(self.ahead.unsigned_abs())
    }
}

/// Whether a clock was told to be off.
#[derive(Debug, Default)]
pub(crate) struct SkewWatch {
    is_off: bool,
}

impl SkewWatch {
    /// Takes note of a measurement. Answers whether the clock is off now, when that is new.
    pub(crate) fn look(&mut self, skew: Skew) -> Option<bool> {
        let (least, most) = (skew.size().minus(skew.error), skew.size().plus(skew.error));
        let is_off = if self.is_off { most >= SKEW_OVER } else { least > SKEW_MAX };
        (std::mem::replace(&mut self.is_off, is_off) != is_off).then_some(is_off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a watch says to clocks that are ahead by so many milliseconds, known to some milliseconds.
    fn told(measured: &[(i64, u64)]) -> Vec<Option<bool>> {
        let mut watch = SkewWatch::default();
        let skew = |(ahead, error): &(i64, u64)| Skew { ahead: ahead * 1_000, error: Span::from_millis(*error) };
        measured.iter().map(|measured| watch.look(skew(measured))).collect()
    }

    #[test]
    fn is_told_once_and_when_it_is_over() {
        assert_eq!(
            told(&[(1_000, 0), (-1_001, 0), (2_000, 0), (600, 0), (-499, 0), (0, 0)]),
            [None, Some(true), None, None, Some(false), None]
        );
    }

    #[test]
    fn what_is_not_known_well_changes_nothing() {
        assert_eq!(told(&[(1_500, 600), (1_500, 100), (400, 200), (400, 50)]), [None, Some(true), None, Some(false)]);
    }

    #[test]
    fn others_are_told_what_has_changed_much() {
        let told = |ahead: i64, error: u64, before: Option<i64>| {
            let error = Span::from_millis(error);
            Skew { ahead: ahead * 1_000, error }.told(before.map(|before| before * 1_000)) / 1_000
        };
        assert_eq!(told(7, 0, None), 7);
        assert_eq!((told(27, 0, Some(7)), told(28, 0, Some(7)), told(-14, 0, Some(7))), (7, 28, -14));
        assert_eq!((told(100, 200, Some(7)), told(300, 200, Some(7))), (7, 300));
    }

    #[test]
    fn the_answer_was_half_way() {
        let time = Instant::from_secs(1_000_000);
        let (asked, heard) = (Span::from_millis(100), Span::from_millis(300));
        let behind = Skew::new(asked, heard, time, time.minus(Span::from_millis(400)));
        assert_eq!(behind, Skew { ahead: -500_000, error: Span::from_millis(100) });
        assert_eq!(behind.size(), Span::from_millis(500));
    }
}
