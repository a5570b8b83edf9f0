//! What a store keeps about a lock, and the rules by which it is taken, renewed, released and expires.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, LockTake};
use cronhold_core::record::{LockName, LockState, Record, RecordVersion, StoredRecord};
use cronhold_schedule::{Instant, Span};

use crate::UnitRefusal;

/// The stored state of a lock. A free lock keeps its fence for a while, so that fences only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LockEntry {
    /// The fence of the latest holder.
    pub fence: u64,
    /// The latest hold, which may have expired; `None` if it was released.
    pub hold: Option<LockHold>,
}

/// A run's hold of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockHold {
    /// The run that holds the lock.
    pub holder: RunId,
    /// The version of the unit that took the lock.
    pub version: RecordVersion,
    /// The time to live that the unit requested; `None` if the lock never expires.
    pub ttl: Option<Span>,
    /// When the hold expires unless it is renewed, by the store's clock; `None` if it never expires.
    pub until: Option<Instant>,
}

impl LockHold {
    fn new(take: &LockTake, version: RecordVersion, now: Instant) -> Self {
        Self { holder: take.holder, version, ttl: take.ttl, until: take.ttl.map(|ttl| now.plus(ttl)) }
    }

    fn is_valid(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl LockEntry {
    /// The holder; `None` if the lock is free or the hold has expired.
    pub fn holder(&self, now: Instant) -> Option<RunId> {
        self.valid_hold(now).map(|hold| hold.holder)
    }

    /// The lock as a record; `None` if it is free or the hold has expired.
    pub fn to_record(&self, name: &LockName, now: Instant) -> Option<StoredRecord> {
        let hold = self.valid_hold(now)?;
        let state = LockState { name: name.clone(), holder: hold.holder, fence: self.fence, until: hold.until };
        Some(StoredRecord { version: hold.version, record: Record::Lock(Arc::new(state)) })
    }

    /// Releases the lock if the run holds it.
    pub fn release(&mut self, holder: RunId) {
        self.hold.take_if(|hold| hold.holder == holder);
    }

    /// The refusal of a unit that takes the lock while another run holds it and the unit does not release it first.
    pub fn refusal(&self, take: &LockTake, free: &[LockRelease], now: Instant) -> Option<UnitRefusal> {
        let holder = self.holder(now).filter(|holder| *holder != take.holder)?;
        let is_released = free.iter().any(|free| free.lock == take.lock && free.holder == holder);
        (!is_released).then(|| UnitRefusal::Held { lock: take.lock.clone(), holder })
    }

    /// Takes the lock and returns its fence. The caller has checked that no other run holds it. A run that already holds
    /// the lock keeps its fence; another gets a higher one, which is at least the time in milliseconds.
    pub fn acquire(&mut self, take: &LockTake, version: RecordVersion, now: Instant) -> u64 {
        if self.valid_hold(now).is_none() {
            let millis = u64::try_from(now.millis()).unwrap_or(0);
            self.fence = millis.max(self.fence.saturating_add(1));
        }
        self.hold = Some(LockHold::new(take, version, now));
        self.fence
    }

    /// Takes the lock for its former holder again, with at least its former fence, unless it is held.
    pub fn restore(&mut self, take: &LockTake, version: RecordVersion, fence: u64, now: Instant) {
        if self.valid_hold(now).is_none() {
            self.fence = self.fence.max(fence);
            self.hold = Some(LockHold::new(take, version, now));
        }
    }

    /// Renews the lock for its time to live. Returns false if the run has lost it.
    pub fn renew(&mut self, holder: RunId, now: Instant) -> bool {
        let hold = self.hold.as_mut().filter(|hold| hold.holder == holder && hold.is_valid(now));
        let Some(hold) = hold else { return false };
        hold.until = hold.ttl.map(|ttl| now.plus(ttl));
        true
    }

    /// Whether the entry can be deleted: the lock is free and was last taken before a time, or it is a mark that has
    /// expired.
    pub fn is_expendable(&self, name: &LockName, before: Instant, now: Instant) -> bool {
        let before = u64::try_from(before.millis()).unwrap_or(0);
        self.valid_hold(now).is_none() && (self.fence < before || name.is_mark())
    }

    fn valid_hold(&self, now: Instant) -> Option<&LockHold> {
        self.hold.as_ref().filter(|hold| hold.is_valid(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_locks_and_expired_marks_are_expendable() {
        let day = Span::from_secs(86_400);
        let now = Instant::from_secs(1_800_000_000);
        let before = now.minus(day).minus(Span::from_secs(1));
        let is_expendable = |name: &str, ttl, taken: Instant| {
            let name = LockName::parse(name).expect("a name");
            let take = LockTake { lock: name.clone(), holder: RunId::from_key(now, "r"), ttl };
            let mut entry = LockEntry::default();
            entry.acquire(&take, RecordVersion::new(1, 1), taken);
            entry.is_expendable(&name, before, now)
        };
        let minute_ago = now.minus(Span::from_secs(60));
        assert!(!is_expendable("held", None, before.minus(day)));
        assert!(is_expendable("old", Some(day), now.minus(day).minus(day)));
        assert!(!is_expendable("recent", Some(Span::from_secs(1)), minute_ago));
        assert!(is_expendable("#cronhold/request/1", Some(Span::from_secs(1)), minute_ago));
        assert!(!is_expendable("#cronhold/request/2", Some(day), minute_ago));
    }
}
