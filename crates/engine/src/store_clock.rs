//! The time of a shared store, estimated from the store's answers and the node's uptime, which cannot be set. The node's
//! system clock is not used, so that all nodes agree on what is due.

use std::collections::VecDeque;

use cronhold_schedule::{Instant, Span};

use crate::clock_watch::{ClockStep, HOLD, STEP_MIN};

/// Answers that are kept.
const ANSWERS_MAX: usize = 8;
/// Two clocks drift apart by less than one part in this many.
const DRIFT: u64 = 5_000;
/// A node claims nothing if the error of its estimate may be larger than this.
pub(crate) const ERROR_MAX: Span = Span::from_millis(500);
/// A node claims nothing if its last answer is older than this, because it was suspended or the store was unreachable:
/// the store's clock may have been set since.
const ANSWER_AGE_MAX: Span = Span::from_secs(6);
/// The time until the next check in these cases.
const CHECK_AGAIN: Span = Span::from_millis(250);

/// An estimate of the store's time.
#[derive(Debug, Default)]
pub(crate) struct StoreClock {
    answers: VecDeque<TimeAnswer>,
    /// The latest time that was returned. Small corrections do not make the time go back.
    latest: Option<Instant>,
    step: Option<ClockStep>,
    hold_until: Option<Span>,
}

/// The store's time at an uptime, with the largest possible error.
#[derive(Debug, Clone, Copy)]
struct TimeAnswer {
    at: Span,
    time: Instant,
    error: Span,
}

impl TimeAnswer {
    fn time(&self, uptime: Span) -> Instant {
        self.time.plus(uptime.minus(self.at)).minus(self.at.minus(uptime))
    }

    fn error(&self, uptime: Span) -> Span {
        self.error.plus(Span::from_micros(uptime.minus(self.at).micros() / DRIFT))
    }
}

impl StoreClock {
    /// Records the store's time, which was requested and received at two uptimes.
    pub(crate) fn record(&mut self, requested: Span, received: Span, time: Instant) {
        let half = Span::from_micros(received.minus(requested).micros() / 2);
        let new = TimeAnswer { at: requested.plus(half), time, error: half };
        if let Some(known) = self.best(new.at) {
            let expected = known.time(new.at);
            let off = expected.since(time).max(time.since(expected));
            // A contradiction means that the store's clock was set, or that another server answers now.
            if off > known.error(new.at).plus(new.error) {
                self.answers.clear();
            }
            if off.minus(new.error) > STEP_MIN {
                self.step = Some(ClockStep { forward: time > expected, by: off });
                self.hold_until = Some(received.plus(HOLD));
                self.latest = None;
            }
        }
        if self.answers.len() == ANSWERS_MAX {
            self.answers.pop_front();
        }
        self.answers.push_back(new);
    }

    /// The store's time now, and a step of its clock that was not returned yet. Without an answer the time is the epoch,
    /// and [`Self::hold`] keeps the node from claiming anything.
    pub(crate) fn read(&mut self, uptime: Span) -> (Instant, Option<ClockStep>) {
        let Some(best) = self.best(uptime).copied() else { return (Instant::EPOCH, self.step.take()) };
        let mut now = best.time(uptime);
        // A time that was returned while the error was too large does not bind the estimate later.
        if best.error(uptime) <= ERROR_MAX {
            now = self.latest.map_or(now, |latest| latest.max(now));
            self.latest = Some(now);
        }
        (now, self.step.take())
    }

    /// How long the node may not claim anything; `None` if it may.
    pub(crate) fn hold(&mut self, uptime: Span) -> Option<Span> {
        let left = self.hold_until.map_or(Span::ZERO, |until| until.minus(uptime));
        if left.is_zero() {
            self.hold_until = None;
        }
        let is_old = self.answers.back().is_none_or(|latest| uptime.minus(latest.at) > ANSWER_AGE_MAX);
        let is_inexact = is_old || self.best(uptime).is_none_or(|answer| answer.error(uptime) > ERROR_MAX);
        let wait = if is_inexact { left.max(CHECK_AGAIN) } else { left };
        (!wait.is_zero()).then_some(wait)
    }

    fn best(&self, uptime: Span) -> Option<&TimeAnswer> {
        self.answers.iter().min_by_key(|answer| answer.error(uptime))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    fn day(millis: u64) -> Instant {
        Instant::from_secs(1_000_000).plus(up(millis))
    }

    #[test]
    fn estimate_uses_the_most_exact_answer() {
        let mut clock = StoreClock::default();
        assert_eq!(clock.hold(up(0)), Some(CHECK_AGAIN), "nothing is claimed without an answer");
        clock.record(up(0), up(2_000), day(900));
        assert_eq!(clock.hold(up(2_000)), Some(CHECK_AGAIN), "an error of a second is too large");
        clock.record(up(4_000), up(4_010), day(4_000));
        assert_eq!((clock.read(up(5_005)), clock.hold(up(5_005))), ((day(5_000), None), None));
        // A less exact answer changes nothing.
        clock.record(up(6_000), up(6_400), day(6_050));
        assert_eq!(clock.read(up(7_005)), (day(7_000), None));
    }

    #[test]
    fn large_step_holds_claims_and_a_small_one_does_not() {
        let mut clock = StoreClock::default();
        clock.record(up(0), up(10), day(5));
        clock.record(up(1_000), up(1_010), day(3_005));
        assert_eq!((clock.read(up(2_005)), clock.hold(up(2_005))), ((day(4_005), None), None));
        clock.record(up(3_000), up(3_010), day(60_005));
        let (now, step) = clock.read(up(4_005));
        assert_eq!((now, step.map(|step| (step.forward, step.by.secs()))), (day(61_005), Some((true, 55))));
        assert_eq!(clock.hold(up(4_010)).map(Span::secs), Some(9));
        clock.record(up(12_000), up(12_010), day(69_005));
        assert_eq!((clock.read(up(13_010)).1, clock.hold(up(13_010))), (None, None));
        clock.record(up(14_000), up(14_010), day(4_005));
        let (now, step) = clock.read(up(14_005));
        assert_eq!(
            (now, step.map(|step| step.forward)),
            (day(4_005), Some(false)),
            "after a step the time may go back"
        );
    }

    /// A node that was suspended resumes with an estimate that was right before.
    #[test]
    fn old_answer_holds_claims() {
        let mut clock = StoreClock::default();
        clock.record(up(0), up(10), day(5));
        assert_eq!(clock.hold(up(6_000)), None);
        assert_eq!(clock.hold(up(6_006)), Some(CHECK_AGAIN));
        clock.record(up(80_000), up(80_010), day(45_005));
        assert_eq!(clock.hold(up(80_010)), Some(HOLD), "the clock was set back meanwhile");
    }

    #[test]
    fn small_correction_does_not_set_the_time_back() {
        let mut clock = StoreClock::default();
        clock.record(up(0), up(400), day(200));
        assert_eq!(clock.read(up(1_000)).0, day(1_000));
        clock.record(up(1_000), up(1_002), day(900));
        assert_eq!(clock.read(up(1_010)).0, day(1_000));
        assert_eq!(clock.read(up(1_201)).0, day(1_100));
    }

    #[test]
    fn exact_answer_replaces_a_rough_estimate() {
        let mut clock = StoreClock::default();
        clock.record(up(0), up(4_000), day(3_900));
        assert_eq!(clock.read(up(4_000)).0, day(5_900), "with an error of two seconds");
        clock.record(up(4_000), up(4_002), day(4_000));
        assert_eq!((clock.read(up(4_011)).0, clock.hold(up(4_011))), (day(4_010), None));
    }
}
