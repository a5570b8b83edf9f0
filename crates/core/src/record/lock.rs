//! Named locks. A unit takes and releases them; the store decides by its own clock whether one is held.

use std::fmt;
use std::sync::Arc;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{Instant, Span, TextError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::TriggerId;
use crate::ids::{JobId, RunId};
use crate::job::LockPolicy;

/// The name of a lock. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName(Arc<str>);

/// A lock and its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockState {
    /// The name of the lock.
    pub name: LockName,
    /// The run that holds it.
    pub holder: RunId,
    /// The fencing token: it grows with each holder.
    pub fence: u64,
    /// When it expires unless it is renewed, by the store's clock; `None` if it never expires.
    pub until: Option<Instant>,
}

impl LockName {
    /// The longest name in bytes.
    pub const MAX: usize = 400;
    /// The prefix of names that are reserved for Cronhold. No job may have such a lock.
    pub const RESERVED: &str = "#cronhold/";
    /// The prefix of the names of event locks.
    const EVENT: &str = "#cronhold/event/";
    /// The prefix of the names of locks for idempotency keys.
    const REQUEST: &str = "#cronhold/request/";
    /// The prefixes of marks; see [`Self::is_mark`].
    pub const MARKS: [&str; 2] = [Self::EVENT, Self::REQUEST];

    /// The lock of a job, if it has one.
    pub fn of(job: &JobId, lock: &LockPolicy) -> Option<Self> {
        match lock {
            LockPolicy::None => None,
            LockPolicy::Job => Some(Self(job.as_str().into())),
            LockPolicy::Named(name) => Some(Self(name.as_str().into())),
        }
    }

    /// Parses a name of 1 to [`Self::MAX`] bytes.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text.is_empty() || text.len() > Self::MAX {
            return Err(TextError::new(0..text.len(), format!("`{}` cannot be a lock's name", shortened(text))));
        }
        Ok(Self(text.into()))
    }

    /// How long an event counts as handled. A node that receives an event this late must not act on it.
    pub const EVENT_TTL: Span = Span::from_secs(15 * 60);

    /// The lock of an event that all nodes receive, from a digest of the event.
    pub fn of_event(digest: &str) -> Result<Self, TextError> {
        Self::parse(&format!("{}{digest}", Self::EVENT))
    }

    /// The lock of an idempotency key, from a digest of the key and of what it was sent for.
    pub fn of_request(digest: &str) -> Result<Self, TextError> {
        Self::parse(&format!("{}{digest}", Self::REQUEST))
    }

    /// The mark of a trigger: it says that the job has received a trigger with this id.
    pub fn of_trigger(job: &JobId, trigger: &TriggerId) -> Self {
        let mut hash = Sha256::new();
        for part in ["trigger", job.as_str(), trigger.as_str()] {
            // Each part has its length as a prefix, so that different lists of parts never have the same bytes.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("{}{digest}", Self::REQUEST).into())
    }

    /// Whether the name is reserved for Cronhold.
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(Self::RESERVED)
    }

    /// Whether the lock is a mark: it says that an event or a request was carried out. A mark is neither renewed nor
    /// released but expires, and its fence is never read.
    pub fn is_mark(&self) -> bool {
        Self::MARKS.iter().any(|prefix| self.0.starts_with(prefix))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

cronhold_schedule::stored_as_text!(LockName);
