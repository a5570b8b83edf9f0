//! Pauses of a job or of all jobs. During a pause, cursors do not advance. The occurrences that passed are recorded
//! afterwards, so the last pause is stored too.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::Actor;

/// Whether something is paused, and when it last was.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PauseState {
    /// The pause that is in effect; `None` if there is none.
    pub current: Option<ActivePause>,
    /// Start and end of the previous pause.
    pub last: Option<(Instant, Instant)>,
}

/// A pause that is in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivePause {
    /// When it began.
    pub since: Instant,
    /// The actor that paused.
    pub by: Actor,
    /// The operator's reason; may be empty.
    pub why: String,
    /// When the pause ends by itself; `None` if only a resume ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
}

impl ActivePause {
    /// Whether the pause has ended by itself.
    pub fn has_expired(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl PauseState {
    /// Whether a pause is recorded. One that ends by itself counts until a node has recorded its end.
    pub const fn is_paused(&self) -> bool {
        self.current.is_some()
    }

    /// Whether a pause is in effect at a time.
    pub fn is_paused_at(&self, now: Instant) -> bool {
        self.current.as_ref().is_some_and(|pause| !pause.has_expired(now))
    }

    /// Whether an instant lies in the current or in the previous pause.
    pub fn cover(&self, at: Instant) -> bool {
        let current = self.current.as_ref().is_some_and(|pause| pause.since <= at && !pause.has_expired(at));
        current || self.last.is_some_and(|(from, to)| from <= at && at <= to)
    }
}
