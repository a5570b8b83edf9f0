//! When the keeper ends: after some time without programs and without a daemon, or, once it was asked to retire, as
//! soon as no program runs.

use std::time::Duration;

/// The keeper's own end. Times are microseconds of the keeper's clock.
#[derive(Debug)]
pub(super) struct Lifetime {
    /// How long the keeper stays without programs and without a daemon.
    idle_max: u64,
    idle_since: Option<u64>,
    /// Whether nothing more is started, and the keeper ends with the last program.
    is_retiring: bool,
}

impl Lifetime {
    pub(super) fn new(idle_max: Duration, now: u64) -> Self {
        let idle_max = u64::try_from(idle_max.as_micros()).unwrap_or(u64::MAX);
        Self { idle_max, idle_since: Some(now), is_retiring: false }
    }

    pub(super) fn retire(&mut self) {
        self.is_retiring = true;
    }

    pub(super) fn is_retiring(&self) -> bool {
        self.is_retiring
    }

    /// Notes at the end of a turn whether there is a daemon or a program.
    pub(super) fn note(&mut self, is_idle: bool, now: u64) {
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or(now));
    }

    /// When the keeper ends if nothing happens.
    pub(super) fn due(&self) -> Option<u64> {
        self.idle_since.map(|since| since.saturating_add(self.idle_max))
    }

    /// Whether the keeper ends now, given that no program runs and no launch waits.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.is_retiring || self.due().is_some_and(|due| now >= due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeper_ends_after_idle_time_or_when_retired() {
        let mut lifetime = Lifetime::new(Duration::from_micros(100), 0);
        assert!(!lifetime.is_over(99) && lifetime.is_over(100));
        lifetime.note(false, 50);
        assert_eq!((lifetime.due(), lifetime.is_over(1_000)), (None, false));
        lifetime.note(true, 1_000);
        lifetime.note(true, 1_050);
        assert_eq!(lifetime.due(), Some(1_100));
        lifetime.retire();
        assert!(lifetime.is_over(1_000));
    }
}
