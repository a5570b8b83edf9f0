//! Notices when someone sets the clock. Time of day is compared with uptime, which nobody can set; suspended time
//! counts in both, so that waking up is no step.

use cronhold_schedule::{Instant, Span};

/// A larger difference between two looks is a step.
pub(crate) const STEP_MIN: Span = Span::from_secs(5);
/// Nothing is claimed for so long after a step, so that a clock that is set twice does no harm.
pub(crate) const HOLD: Span = Span::from_secs(10);

/// A step of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Whether it went forward.
    pub(crate) forward: bool,
    /// By how much.
    pub(crate) by: Span,
}

/// Watches the clock.
#[derive(Debug, Default)]
pub(crate) struct ClockWatch {
    /// Time of day when the machine was started, as seen at the last look.
    start: Option<Instant>,
    hold_until: Option<Span>,
}

impl ClockWatch {
    /// Looks at both clocks.
    pub(crate) fn look(&mut self, now: Instant, uptime: Span) -> Option<Step> {
        let start = now.minus(uptime);
        let before = self.start.replace(start)?;
        let step = Step { forward: start > before, by: start.since(before).max(before.since(start)) };
        if step.by <= STEP_MIN {
            return None;
        }
        self.hold_until = Some(uptime.plus(HOLD));
        Some(step)
    }

    /// How long nothing may be claimed; nothing, when all is well.
    pub(crate) fn hold(&mut self, uptime: Span) -> Option<Span> {
        let left = self.hold_until?.minus(uptime);
        if left.is_zero() {
            self.hold_until = None;
            return None;
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_steps_from_drift_and_suspend() {
        let mut watch = ClockWatch::default();
        let mut look = |now: i64, uptime: u64| {
            let step = watch.look(Instant::from_secs(now), Span::from_secs(uptime));
            let hold = watch.hold(Span::from_secs(uptime)).map(Span::secs);
            (step.map(|step| (step.forward, step.by.secs())), hold)
        };
        assert_eq!(look(1_000, 10), (None, None));
        assert_eq!(look(1_001, 11), (None, None));
        // A drift of a second in a second is no step, and neither are eight hours of sleep.
        assert_eq!(look(1_003, 12), (None, None));
        assert_eq!(look(29_803, 28_812), (None, None));
        assert_eq!(look(29_903, 28_813), (Some((true, 99)), Some(10)));
        assert_eq!(look(29_908, 28_818), (None, Some(5)));
        assert_eq!(look(29_868, 28_819), (Some((false, 41)), Some(10)));
        assert_eq!(look(29_878, 28_829), (None, None));
    }
}
