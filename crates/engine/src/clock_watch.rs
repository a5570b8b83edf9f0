//! Detects when the system clock is set. It compares the time of day with the uptime, which cannot be set. Both include
//! suspended time, so that waking up is not a step.

use cronhold_schedule::{Instant, Span};

/// A change of the difference between clock and uptime that is larger than this is a step.
pub(crate) const STEP_MIN: Span = Span::from_secs(5);
/// How long a node claims nothing after a step, in case the clock is set again.
pub(crate) const HOLD: Span = Span::from_secs(10);

/// A step of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockStep {
    /// Whether the clock was set forward.
    pub(crate) forward: bool,
    /// The size of the step.
    pub(crate) by: Span,
}

/// Watches the system clock for steps.
#[derive(Debug, Default)]
pub(crate) struct ClockWatch {
    /// The time of day at which the machine was started, by the clock at the last check.
    start: Option<Instant>,
    hold_until: Option<Span>,
}

impl ClockWatch {
    /// Compares the time of day with the uptime. Returns the step since the last check, if there was one.
    pub(crate) fn check(&mut self, now: Instant, uptime: Span) -> Option<ClockStep> {
        let start = now.minus(uptime);
        let before = self.start.replace(start)?;
        let step = ClockStep { forward: start > before, by: start.since(before).max(before.since(start)) };
        if step.by <= STEP_MIN {
            return None;
        }
        self.hold_until = Some(uptime.plus(HOLD));
        Some(step)
    }

    /// How long the node may not claim anything; `None` if it may.
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
    fn steps_are_distinguished_from_drift_and_suspension() {
        let mut watch = ClockWatch::default();
        let mut check = |now: i64, uptime: u64| {
            let step = watch.check(Instant::from_secs(now), Span::from_secs(uptime));
            let hold = watch.hold(Span::from_secs(uptime)).map(Span::secs);
            (step.map(|step| (step.forward, step.by.secs())), hold)
        };
        assert_eq!(check(1_000, 10), (None, None));
        assert_eq!(check(1_001, 11), (None, None));
        // A drift of a second per second is not a step, and neither are eight hours of suspension.
        assert_eq!(check(1_003, 12), (None, None));
        assert_eq!(check(29_803, 28_812), (None, None));
        assert_eq!(check(29_903, 28_813), (Some((true, 99)), Some(10)));
        assert_eq!(check(29_908, 28_818), (None, Some(5)));
        assert_eq!(check(29_868, 28_819), (Some((false, 41)), Some(10)));
        assert_eq!(check(29_878, 28_829), (None, None));
    }
}
