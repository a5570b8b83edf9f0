//! How far the watchdog is. A pass over much work takes several steps, so that live claims are made in between, and
//! goes on where it stopped. A pass that takes longer than its period is reported.

use cronhold_core::JobId;
use cronhold_schedule::Span;
use cronhold_store::Obligation;

/// What a pass does next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum PassStep {
    /// Check the state and the programs of this node.
    #[default]
    Node,
    /// Check what is overdue in the store, after an obligation.
    Obligations(Option<Obligation>),
    /// Check whether jobs are still paused, after a job.
    Pauses(Option<JobId>),
}

/// How far a walk of the watchdog is: since when it lasts, and how many records it has checked.
#[derive(Debug, Default)]
pub(crate) struct WalkProgress {
    /// The uptime at which it began; `None` between two walks.
    began: Option<Span>,
    checked: usize,
    is_reported: bool,
}

impl WalkProgress {
    /// Counts checked records of a walk, which begins if none has begun.
    pub(crate) fn record(&mut self, checked: usize, uptime: Span) {
        self.began.get_or_insert(uptime);
        self.checked += checked;
    }

    /// Ends the walk. Returns how long it took.
    pub(crate) fn end(&mut self, uptime: Span) -> Span {
        let took = self.began.map_or(Span::ZERO, |began| uptime.minus(began));
        *self = Self::default();
        took
    }

    /// How long the walk has taken and how many records it has checked, once for each walk that takes longer than
    /// `period`.
    pub(crate) fn take_delay(&mut self, period: Span, uptime: Span) -> Option<(Span, usize)> {
        let took = uptime.minus(self.began?);
        (took > period && !std::mem::replace(&mut self.is_reported, true)).then_some((took, self.checked))
    }
}

/// The progress of the watchdog.
#[derive(Debug, Default)]
pub(crate) struct WatchdogProgress {
    /// What the current pass over the work of the node does next.
    pub(crate) step: PassStep,
    /// Whether another pass was requested during the current one.
    pub(crate) is_repeated: bool,
    /// The current pass.
    pub(crate) pass: WalkProgress,
    /// The current walk over all jobs.
    pub(crate) jobs: WalkProgress,
    /// Whether that walk waits as little as possible between its steps, until it ends: cursors may have to be computed
    /// again, or the store may have lost writes.
    pub(crate) is_urgent: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walk_that_takes_too_long_is_reported_once() {
        let (period, second) = (Span::from_secs(60), Span::from_secs);
        let mut walk = WalkProgress::default();
        assert_eq!(walk.take_delay(period, second(500)), None);
        walk.record(1_000, second(500));
        walk.record(500, second(560));
        assert_eq!(walk.take_delay(period, second(560)), None);
        assert_eq!(walk.take_delay(period, second(561)), Some((second(61), 1_500)));
        assert_eq!(walk.take_delay(period, second(562)), None);
        assert_eq!(walk.end(second(570)), second(70));
        walk.record(1, second(600));
        assert_eq!(walk.take_delay(period, second(661)), Some((second(61), 1)));
    }
}
