//! What the way to the store is like, and the way of reports and hints: how long things take, and which of them get
//! lost. How bad it is was drawn from the seed; that it begins and ends is told from outside.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cronhold_schedule::Span;
use cronhold_store::Fault;

use crate::chance::SimRandom;
use crate::scenario::{FaultPeriod, HintLoss};

/// How long a call takes one way in a storm in which the store is slow.
const SLOW: (u64, u64) = (300_000, 6_000_000);
/// What comes late comes this much later.
const LATE: (Span, Span) = (Span::from_millis(50), Span::from_secs(90));
/// A thousand of a thousand.
const ALL: u64 = 1_000;

/// The weather of one simulation. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct FaultPlan(Arc<Mutex<FaultPlanState>>);

#[derive(Debug, Default)]
struct FaultPlanState {
    /// The longest that an ordinary call takes, in microseconds; a few take much longer.
    usual: u64,
    /// Calls in a thousand that fail and do nothing.
    away: u64,
    /// Calls in a thousand whose answer is lost.
    unknown: u64,
    /// What becomes of hints and of reports.
    hints: HintLoss,
    reports: HintLoss,
    /// Storms by the numbers of their acts.
    storms: Vec<(usize, FaultPeriod)>,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallFate {
    /// It arrives, and so does its answer, unless there is a storm at its other end.
    Fine,
    /// It never leaves.
    Stays,
    /// Nobody hears the answer; it gives up waiting after this time, be the call done by then or not.
    Silent {
        /// How long it waits.
        patience: Span,
        /// Whether the call never arrives.
        is_lost: bool,
    },
}

impl FaultPlan {
    /// Weather in which an ordinary call takes so many microseconds at most, and nothing fails.
    pub(crate) fn new(usual: u64) -> Self {
        Self(Arc::new(Mutex::new(FaultPlanState { usual, ..FaultPlanState::default() })))
    }

    /// So many calls in a thousand fail from now on, and of so many the answers are lost.
    pub(crate) fn fail(&self, away: u64, unknown: u64) {
        let mut inner = self.lock();
        (inner.away, inner.unknown) = (away, unknown);
    }

    /// What becomes of hints from now on.
    pub(crate) fn lose_hints(&self, loss: HintLoss) {
        self.lock().hints = loss;
    }

    /// What becomes of reports from now on.
    pub(crate) fn lose_reports(&self, loss: HintLoss) {
        self.lock().reports = loss;
    }

    /// A storm begins.
    pub(crate) fn begin(&self, number: usize, storm: FaultPeriod) {
        self.lock().storms.push((number, storm));
    }

    /// A storm ends. Answers which, if it had not ended before.
    pub(crate) fn end(&self, number: usize) -> Option<FaultPeriod> {
        let mut inner = self.lock();
        let place = inner.storms.iter().position(|(known, _)| *known == number)?;
        Some(inner.storms.remove(place).1)
    }

    /// Nothing fails from now on. Answers with the storms that this ends.
    pub(crate) fn clear_up(&self) -> Vec<FaultPeriod> {
        let mut inner = self.lock();
        let usual = inner.usual;
        let before = std::mem::replace(&mut *inner, FaultPlanState { usual, ..FaultPlanState::default() });
        before.storms.into_iter().map(|(_, storm)| storm).collect()
    }

    /// How long one way of a call takes.
    pub(crate) fn delay(&self, chance: &SimRandom, machine: usize) -> Span {
        let inner = self.lock();
        if inner.is_in(machine, |storm| storm.is_slow()) {
            return chance.micros(SLOW.0, SLOW.1);
        }
        if chance.per_mille(5) { chance.micros(inner.usual, 2_000_000) } else { chance.micros(50, inner.usual) }
    }

    /// What becomes of a call that is sent now.
    pub(crate) fn fate(&self, chance: &SimRandom) -> CallFate {
        let inner = self.lock();
        if chance.per_mille(inner.away) {
            return CallFate::Stays;
        }
        if chance.per_mille(inner.unknown) {
            return CallFate::Silent { patience: chance.micros(50, 4 * inner.usual), is_lost: chance.one_in(3) };
        }
        CallFate::Fine
    }

    /// Why the store does nothing for a call that arrives now.
    pub(crate) fn refuses(&self, machine: usize, is_write: bool) -> Option<Fault> {
        let inner = self.lock();
        if inner.is_in(machine, |storm| storm.is_away()) {
            return Some(Fault::Unavailable("no connection".to_owned()));
        }
        let is_full = is_write && inner.is_in(machine, |storm| storm.is_read_only());
        is_full.then(|| Fault::ReadOnly("the disk is full".to_owned()))
    }

    /// Whether one hint of many is lost.
    pub(crate) fn loses_hint(&self, chance: &SimRandom) -> bool {
        let lost = self.lock().hints.lost;
        lost > 0 && chance.per_mille(lost)
    }

    /// How much later than usual the copies of some hints come; there is always one.
    pub(crate) fn hints(&self, chance: &SimRandom) -> Vec<Span> {
        let loss = self.lock().hints;
        copies(HintLoss { lost: 0, ..loss }, chance)
    }

    /// How much later than usual the copies of a report come; none, when it is lost.
    pub(crate) fn reports(&self, chance: &SimRandom) -> Vec<Span> {
        let loss = self.lock().reports;
        copies(loss, chance)
    }

    fn lock(&self) -> MutexGuard<'_, FaultPlanState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultPlanState {
    fn is_in(&self, machine: usize, is_meant: impl Fn(&FaultPeriod) -> bool) -> bool {
        let mut storms = self.storms.iter().map(|(_, storm)| storm);
        storms.any(|storm| storm.machine.is_none_or(|only| only == machine) && is_meant(storm))
    }
}

/// How much later than usual the copies of something come.
fn copies(loss: HintLoss, chance: &SimRandom) -> Vec<Span> {
    let HintLoss { lost, late, double } = loss;
    if lost + late + double == 0 {
        return vec![Span::ZERO];
    }
    let drawn = chance.between(0, ALL - 1);
    if drawn < lost {
        return Vec::new();
    }
    let delay = || if chance.per_mille(late) { chance.span(LATE.0, LATE.1) } else { Span::ZERO };
    let first = delay();
    if chance.per_mille(double) { vec![first, delay().plus(chance.span(LATE.0, LATE.1))] } else { vec![first] }
}
