//! Faults of the connection to the store and of the delivery of hints and reports: delays and losses. The scenario sets
//! their rates; `events` begins and ends periods of store faults.

use std::sync::{Arc, Mutex, MutexGuard};

use cronhold_schedule::Span;
use cronhold_store::Fault;
use cronhold_store::lock_mutex;

use crate::random::SimRandom;
use crate::scenario::{FaultPeriod, HintLoss};

/// One-way delay of a call while the store is slow, in microseconds.
const SLOW: (u64, u64) = (300_000, 6_000_000);
/// Extra delay of late messages.
const LATE: (Span, Span) = (Span::from_millis(50), Span::from_secs(90));
/// 1000 per mille.
const ALL: u64 = 1_000;

/// The current faults of a simulation. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct FaultPlan(Arc<Mutex<FaultPlanState>>);

#[derive(Debug, Default)]
struct FaultPlanState {
    /// Maximum duration of an ordinary call, in microseconds; a few calls take much longer.
    usual: u64,
    /// Whether all hints are lost, also after the fault phase.
    loses_all_hints: bool,
    /// Calls in a thousand that fail without effect.
    unavailable: u64,
    /// Calls in a thousand whose reply is lost.
    unknown: u64,
    /// Losses of hints and of reports.
    hints: HintLoss,
    reports: HintLoss,
    /// Active periods of store faults, by the numbers of their scenario events.
    periods: Vec<(usize, FaultPeriod)>,
}

/// The fate of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallFate {
    /// The call and its reply arrive, unless the store refuses it.
    Delivered,
    /// The call is not sent.
    NotSent,
    /// The reply is lost. The caller gives up after a timeout, whether or not the call took effect.
    ReplyLost {
        /// How long the caller waits.
        timeout: Span,
        /// Whether the call itself is lost too.
        is_lost: bool,
    },
}

impl FaultPlan {
    /// No faults, except that hints may be lost for ever; an ordinary call takes at most `usual` microseconds.
    pub(crate) fn new(usual: u64, loses_all_hints: bool) -> Self {
        Self(Arc::new(Mutex::new(FaultPlanState { usual, loses_all_hints, ..FaultPlanState::default() })))
    }

    /// Sets how many calls in a thousand fail, and how many lose their reply.
    pub(crate) fn fail(&self, unavailable: u64, unknown: u64) {
        let mut inner = self.lock();
        (inner.unavailable, inner.unknown) = (unavailable, unknown);
    }

    /// Sets the losses of hints.
    pub(crate) fn lose_hints(&self, loss: HintLoss) {
        self.lock().hints = loss;
    }

    /// Sets the losses of reports.
    pub(crate) fn lose_reports(&self, loss: HintLoss) {
        self.lock().reports = loss;
    }

    /// Begins a period of store faults.
    pub(crate) fn begin(&self, number: usize, period: FaultPeriod) {
        self.lock().periods.push((number, period));
    }

    /// Ends a period of store faults and returns it; `None` if it has already ended.
    pub(crate) fn end(&self, number: usize) -> Option<FaultPeriod> {
        let mut inner = self.lock();
        let index = inner.periods.iter().position(|(known, _)| *known == number)?;
        Some(inner.periods.remove(index).1)
    }

    /// Ends all faults and returns the periods that were active.
    pub(crate) fn clear(&self) -> Vec<FaultPeriod> {
        let mut inner = self.lock();
        let FaultPlanState { usual, loses_all_hints, .. } = *inner;
        let calm = FaultPlanState { usual, loses_all_hints, ..FaultPlanState::default() };
        let before = std::mem::replace(&mut *inner, calm);
        before.periods.into_iter().map(|(_, period)| period).collect()
    }

    /// Draws the one-way delay of a call.
    pub(crate) fn delay(&self, rng: &SimRandom, machine: usize) -> Span {
        let inner = self.lock();
        if inner.is_in(machine, |period| period.is_slow()) {
            return rng.micros(SLOW.0, SLOW.1);
        }
        if rng.per_mille(5) { rng.micros(inner.usual, 2_000_000) } else { rng.micros(50, inner.usual) }
    }

    /// Draws the fate of a call that is sent now.
    pub(crate) fn fate(&self, rng: &SimRandom) -> CallFate {
        let inner = self.lock();
        if rng.per_mille(inner.unavailable) {
            return CallFate::NotSent;
        }
        if rng.per_mille(inner.unknown) {
            return CallFate::ReplyLost { timeout: rng.micros(50, 4 * inner.usual), is_lost: rng.one_in(3) };
        }
        CallFate::Delivered
    }

    /// The fault with which the store refuses a call that arrives now; `None` if it accepts the call.
    pub(crate) fn refuses(&self, machine: usize, is_write: bool) -> Option<Fault> {
        let inner = self.lock();
        if inner.is_in(machine, |period| period.is_unreachable()) {
            return Some(Fault::Unavailable("no connection".to_owned()));
        }
        let is_full = is_write && inner.is_in(machine, |period| period.is_read_only());
        is_full.then(|| Fault::ReadOnly("the disk is full".to_owned()))
    }

    /// Draws whether a hint is lost.
    pub(crate) fn loses_hint(&self, rng: &SimRandom) -> bool {
        let inner = self.lock();
        let lost = inner.hints.lost;
        inner.loses_all_hints || lost > 0 && rng.per_mille(lost)
    }

    /// Draws the extra delays of the copies of a batch of hints; there is at least one copy.
    pub(crate) fn hints(&self, rng: &SimRandom) -> Vec<Span> {
        let loss = self.lock().hints;
        copies(HintLoss { lost: 0, ..loss }, rng)
    }

    /// Draws the extra delays of the copies of a report; empty if it is lost.
    pub(crate) fn reports(&self, rng: &SimRandom) -> Vec<Span> {
        let loss = self.lock().reports;
        copies(loss, rng)
    }

    fn lock(&self) -> MutexGuard<'_, FaultPlanState> {
        lock_mutex(&self.0)
    }
}

impl FaultPlanState {
    fn is_in(&self, machine: usize, is_meant: impl Fn(&FaultPeriod) -> bool) -> bool {
        let mut periods = self.periods.iter().map(|(_, period)| period);
        periods.any(|period| period.machine.is_none_or(|only| only == machine) && is_meant(period))
    }
}

/// Draws the extra delays of the copies of a message.
fn copies(loss: HintLoss, rng: &SimRandom) -> Vec<Span> {
    let HintLoss { lost, late, double } = loss;
    if lost + late + double == 0 {
        return vec![Span::ZERO];
    }
    let drawn = rng.between(0, ALL - 1);
    if drawn < lost {
        return Vec::new();
    }
    let delay = || if rng.per_mille(late) { rng.span(LATE.0, LATE.1) } else { Span::ZERO };
    let first = delay();
    if rng.per_mille(double) { vec![first, delay().plus(rng.span(LATE.0, LATE.1))] } else { vec![first] }
}
