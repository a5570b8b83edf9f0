//! Whether the store works, and when a node tries it again after it has failed.

use cronhold_schedule::Span;

/// The longest time between two attempts while the store fails.
pub(crate) const BACKOFF_MAX: Span = Span::from_secs(5);
/// The time between the first failure and the second attempt.
const BACKOFF_MIN: Span = Span::from_millis(100);

/// What a node knows about the state of its store.
#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    outage: Option<StoreOutage>,
    has_unknown_outcome: bool,
}

/// The store has failed, and has not worked since.
#[derive(Debug)]
struct StoreOutage {
    retry_at: Span,
    backoff: RetryBackoff,
}

/// The time to wait before the next attempt. It doubles with each failure.
#[derive(Debug)]
pub(crate) struct RetryBackoff(Span);

impl StoreHealth {
    /// Records a failure, and puts off the next attempt. Returns whether an outage begins with it.
    pub(crate) fn record_failure(&mut self, uptime: Span) -> bool {
        let is_new = self.outage.is_none();
        let outage =
            self.outage.get_or_insert_with(|| StoreOutage { retry_at: uptime, backoff: RetryBackoff::default() });
        outage.retry_at = uptime.plus(outage.backoff.advance());
        is_new
    }

    /// Records that the store works. Returns whether an outage ends with it.
    pub(crate) fn record_success(&mut self) -> bool {
        self.outage.take().is_some()
    }

    /// Whether the store worked when it was last used.
    pub(crate) fn is_available(&self) -> bool {
        self.outage.is_none()
    }

    /// How long a node leaves the store alone after a failure.
    pub(crate) fn retry_in(&self, uptime: Span) -> Option<Span> {
        let wait = self.outage.as_ref()?.retry_at.minus(uptime);
        (!wait.is_zero()).then_some(wait)
    }

    /// Records that the node does not know whether a commit took effect. The watchdog then compares the store with what
    /// the node knows.
    pub(crate) fn record_unknown_outcome(&mut self) {
        self.has_unknown_outcome = true;
    }

    /// Whether the outcome of a commit is unknown.
    pub(crate) fn has_unknown_outcome(&self) -> bool {
        self.has_unknown_outcome
    }

    /// Records that the node has compared the store with what it knows.
    pub(crate) fn resolve_unknown_outcome(&mut self) {
        self.has_unknown_outcome = false;
    }
}

impl RetryBackoff {
    /// The time to wait now. The next one is twice as long, up to [`BACKOFF_MAX`].
    pub(crate) fn advance(&mut self) -> Span {
        let next = self.0.plus(self.0).min(BACKOFF_MAX);
        std::mem::replace(&mut self.0, next)
    }
}

impl Default for RetryBackoff {
    fn default() -> Self {
        Self(BACKOFF_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rarer_until_the_store_works_again() {
        let mut health = StoreHealth::default();
        let up = Span::from_secs;
        assert_eq!((health.record_failure(up(10)), health.record_failure(up(10))), (true, false));
        assert_eq!(health.retry_in(up(10)), Some(Span::from_millis(200)));
        assert!((0..9).all(|_| !health.record_failure(up(20))));
        assert_eq!((health.retry_in(up(20)), health.retry_in(up(25))), (Some(BACKOFF_MAX), None));
        assert!(!health.is_available(), "the store has not worked since");
        assert_eq!((health.record_success(), health.record_success()), (true, false));
        assert!(health.is_available() && health.retry_in(up(20)).is_none());
    }
}
