//! When something is to be done: now, at a certain time, or not at all.

use cronhold_schedule::Instant;

/// When something is to be done. `Now` sorts before every time, and `Never` after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// As soon as possible, regardless of the clock.
    Now,
    /// At this time, or as soon as possible if it has passed.
    At(Instant),
    /// Not at all.
    Never,
}

impl When {
    /// Whether the time has come at `now`.
    pub fn is_due(self, now: Instant) -> bool {
        self <= Self::At(now)
    }
}

impl From<Instant> for When {
    fn from(at: Instant) -> Self {
        Self::At(at)
    }
}

/// Converts the form in which records store a time: `None` means never.
impl From<Option<Instant>> for When {
    fn from(at: Option<Instant>) -> Self {
        at.map_or(Self::Never, Self::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_always_due_and_never_is_not() {
        let now = Instant::from_secs(60);
        let due = [When::Now, When::from(now), When::At(Instant::from_secs(61)), When::from(None::<Instant>)];
        assert_eq!(due.map(|when| when.is_due(now)), [true, true, false, false]);
        assert!(When::Now < When::At(Instant::from_secs(i64::MIN / 2_000_000)) && due.is_sorted());
    }
}
