//! The time of a store that nodes share, as a node knows it: from questions to the store and the node's own uptime, which
//! nobody can set. The clock on the node's wall does not count, so that nodes agree on what is due.

use std::collections::VecDeque;

use cronhold_schedule::{Instant, Span};

use crate::clock_watch::{HOLD, STEP_MIN, Step};

/// Answers that are remembered.
const ANSWERS_MAX: usize = 8;
/// Two clocks run apart by less than one part in so many.
const DRIFT: u64 = 5_000;
/// A node that is less sure of the time than this claims nothing.
pub(crate) const UNSURE: Span = Span::from_millis(500);
/// Nor does one that has not heard the store's time for so long, because it stood still or the store was away: the store's
/// clock may have been set meanwhile.
const UNHEARD: Span = Span::from_secs(6);
/// It looks again after this.
const LOOK_AGAIN: Span = Span::from_millis(250);

/// What a node knows of the store's time.
#[derive(Debug, Default)]
pub(crate) struct StoreClock {
    answers: VecDeque<Answer>,
    /// The latest time that was told: small corrections do not let time go back.
    told: Option<Instant>,
    step: Option<Step>,
    hold_until: Option<Span>,
}

/// What the store said its time was, at an uptime that is known but for an error.
#[derive(Debug, Clone, Copy)]
struct Answer {
    at: Span,
    time: Instant,
    error: Span,
}

impl Answer {
    fn time(&self, uptime: Span) -> Instant {
        self.time.plus(uptime.minus(self.at)).minus(self.at.minus(uptime))
    }

    fn error(&self, uptime: Span) -> Span {
        self.error.plus(Span::from_micros(uptime.minus(self.at).micros() / DRIFT))
    }
}

impl StoreClock {
    /// The store has said its time: asked at one uptime, heard at another.
    pub(crate) fn answered(&mut self, asked: Span, heard: Span, time: Instant) {
        let half = Span::from_micros(heard.minus(asked).micros() / 2);
        let new = Answer { at: asked.plus(half), time, error: half };
        if let Some(known) = self.best(new.at) {
            let expected = known.time(new.at);
            let off = expected.since(time).max(time.since(expected));
            // What does not fit means that the store's clock was set, or that it is another store now.
            if off > known.error(new.at).plus(new.error) {
                self.answers.clear();
            }
            if off.minus(new.error) > STEP_MIN {
                self.step = Some(Step { forward: time > expected, by: off });
                self.hold_until = Some(heard.plus(HOLD));
                self.told = None;
            }
        }
        if self.answers.len() == ANSWERS_MAX {
            self.answers.pop_front();
        }
        self.answers.push_back(new);
    }

    /// The store's time now, and a step of it that was not told yet.
    pub(crate) fn look(&mut self, uptime: Span) -> (Instant, Option<Step>) {
        let Some(best) = self.best(uptime).copied() else { return (Instant::EPOCH, self.step.take()) };
        let mut now = best.time(uptime);
        // What was told while nobody could be sure does not count once somebody is.
        if best.error(uptime) <= UNSURE {
            now = self.told.map_or(now, |told| told.max(now));
            self.told = Some(now);
        }
        (now, self.step.take())
    }

    /// How long nothing may be claimed; nothing, when all is well.
    pub(crate) fn hold(&mut self, uptime: Span) -> Option<Span> {
        let left = self.hold_until.map_or(Span::ZERO, |until| until.minus(uptime));
        if left.is_zero() {
            self.hold_until = None;
        }
        let is_old = self.answers.back().is_none_or(|latest| uptime.minus(latest.at) > UNHEARD);
        let is_unsure = is_old || self.best(uptime).is_none_or(|answer| answer.error(uptime) > UNSURE);
        let wait = if is_unsure { left.max(LOOK_AGAIN) } else { left };
        (!wait.is_zero()).then_some(wait)
    }

    fn best(&self, uptime: Span) -> Option<&Answer> {
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
    fn knows_the_time_as_well_as_its_best_answer() {
        let mut clock = StoreClock::default();
        assert_eq!(clock.hold(up(0)), Some(LOOK_AGAIN), "without an answer nothing is claimed");
        clock.answered(up(0), up(2_000), day(900));
        assert_eq!(clock.hold(up(2_000)), Some(LOOK_AGAIN), "a second more or less is too much");
        clock.answered(up(4_000), up(4_010), day(4_000));
        assert_eq!((clock.look(up(5_005)), clock.hold(up(5_005))), ((day(5_000), None), None));
        // A worse answer changes nothing.
        clock.answered(up(6_000), up(6_400), day(6_050));
        assert_eq!(clock.look(up(7_005)), (day(7_000), None));
    }

    #[test]
    fn a_step_holds_claims_and_a_small_one_does_not() {
        let mut clock = StoreClock::default();
        clock.answered(up(0), up(10), day(5));
        clock.answered(up(1_000), up(1_010), day(3_005));
        assert_eq!((clock.look(up(2_005)), clock.hold(up(2_005))), ((day(4_005), None), None));
        clock.answered(up(3_000), up(3_010), day(60_005));
        let (now, step) = clock.look(up(4_005));
        assert_eq!((now, step.map(|step| (step.forward, step.by.secs()))), (day(61_005), Some((true, 55))));
        assert_eq!(clock.hold(up(4_010)).map(Span::secs), Some(9));
        clock.answered(up(12_000), up(12_010), day(69_005));
        assert_eq!((clock.look(up(13_010)).1, clock.hold(up(13_010))), (None, None));
        clock.answered(up(14_000), up(14_010), day(4_005));
        let (now, step) = clock.look(up(14_005));
        assert_eq!((now, step.map(|step| step.forward)), (day(4_005), Some(false)), "after a step time may go back");
    }

    /// A node that stood still comes back with a time that was right before.
    #[test]
    fn an_old_answer_is_none() {
        let mut clock = StoreClock::default();
        clock.answered(up(0), up(10), day(5));
        assert_eq!(clock.hold(up(6_000)), None);
        assert_eq!(clock.hold(up(6_006)), Some(LOOK_AGAIN));
        clock.answered(up(80_000), up(80_010), day(45_005));
        assert_eq!(clock.hold(up(80_010)), Some(HOLD), "it went back meanwhile");
    }

    #[test]
    fn small_corrections_do_not_let_time_go_back() {
        let mut clock = StoreClock::default();
        clock.answered(up(0), up(400), day(200));
        assert_eq!(clock.look(up(1_000)).0, day(1_000));
        clock.answered(up(1_000), up(1_002), day(900));
        assert_eq!(clock.look(up(1_010)).0, day(1_000));
        assert_eq!(clock.look(up(1_201)).0, day(1_100));
    }

    #[test]
    fn a_guess_is_forgotten_when_the_time_is_known() {
        let mut clock = StoreClock::default();
        clock.answered(up(0), up(4_000), day(3_900));
        assert_eq!(clock.look(up(4_000)).0, day(5_900), "two seconds more or less");
        clock.answered(up(4_000), up(4_002), day(4_000));
        assert_eq!((clock.look(up(4_011)).0, clock.hold(up(4_011))), (day(4_010), None));
    }
}
