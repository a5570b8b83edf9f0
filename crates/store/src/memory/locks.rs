//! Locks with a time to live. A free lock keeps its fence for a while, so that fences only grow.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, LockTake};
use cronhold_core::record::{LockName, LockState, Record, RecordVersion, StoredRecord};
use cronhold_schedule::{Instant, Span};

/// All locks that were taken lately.
#[derive(Debug, Clone, Default)]
pub(super) struct LockTable(BTreeMap<LockName, MemoryLock>);

#[derive(Debug, Clone, Default)]
struct MemoryLock {
    /// The fence of the latest holder.
    fence: u64,
    held: Option<LockHold>,
}

#[derive(Debug, Clone)]
struct LockHold {
    by: RunId,
    /// The version of the unit that took the lock.
    version: RecordVersion,
    ttl: Option<Span>,
    until: Option<Instant>,
}

impl LockHold {
    fn is_valid(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl LockTable {
    /// The holder of a lock; `None` if it is free or expired.
    pub(super) fn holder(&self, name: &LockName, now: Instant) -> Option<RunId> {
        self.held(name, now).map(|(held, _)| held.by)
    }

    /// A held lock as a record.
    pub(super) fn load(&self, name: &LockName, now: Instant) -> Option<StoredRecord> {
        let (held, fence) = self.held(name, now)?;
        let lock = LockState { name: name.clone(), holder: held.by, fence, until: held.until };
        Some(StoredRecord { version: held.version, record: Record::Lock(Arc::new(lock)) })
    }

    /// Releases a lock if the run holds it.
    pub(super) fn free(&mut self, free: &LockRelease) {
        if let Some(lock) = self.0.get_mut(&free.lock) {
            lock.held.take_if(|held| held.by == free.holder);
        }
    }

    /// Takes a free lock and returns its fence. A run that already holds the lock keeps its fence.
    pub(super) fn take(&mut self, take: LockTake, version: RecordVersion, now: Instant) -> u64 {
        let LockTake { lock, holder, ttl } = take;
        let lock = self.0.entry(lock).or_default();
        let is_held = lock.held.as_ref().is_some_and(|held| held.is_valid(now));
        if !is_held {
            let millis = u64::try_from(now.millis()).unwrap_or(0);
            lock.fence = millis.max(lock.fence + 1);
        }
        lock.held = Some(LockHold { by: holder, version, ttl, until: ttl.map(|ttl| now.plus(ttl)) });
        lock.fence
    }

    /// Takes a lock for its former holder again, with its former fence, unless it is held.
    pub(super) fn restore(&mut self, take: &LockTake, version: RecordVersion, fence: u64, now: Instant) {
        let LockTake { lock, holder, ttl } = take;
        let lock = self.0.entry(lock.clone()).or_default();
        if lock.held.as_ref().is_some_and(|held| held.is_valid(now)) {
            return;
        }
        lock.fence = lock.fence.max(fence);
        lock.held = Some(LockHold { by: *holder, version, ttl: *ttl, until: ttl.map(|ttl| now.plus(ttl)) });
    }

    /// Renews a lock for its time to live. Returns false if the run has lost it.
    pub(super) fn renew(&mut self, name: &LockName, holder: RunId, now: Instant) -> bool {
        let held = self.0.get_mut(name).and_then(|lock| lock.held.as_mut());
        let Some(held) = held.filter(|held| held.by == holder && held.is_valid(now)) else { return false };
        held.until = held.ttl.map(|ttl| now.plus(ttl));
        true
    }

    /// Deletes free locks that were last taken before a time, and marks that have expired.
    pub(super) fn expire(&mut self, before: Instant, now: Instant) {
        let before = u64::try_from(before.millis()).unwrap_or(0);
        self.0.retain(|name, lock| {
            let is_held = lock.held.as_ref().is_some_and(|held| held.is_valid(now));
            is_held || (lock.fence >= before && !name.is_mark())
        });
    }

    fn held(&self, name: &LockName, now: Instant) -> Option<(&LockHold, u64)> {
        let lock = self.0.get(name)?;
        lock.held.as_ref().filter(|held| held.is_valid(now)).map(|held| (held, lock.fence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_locks_and_expired_marks_are_deleted() {
        let mut locks = LockTable::default();
        let day = Span::from_secs(86_400);
        let now = Instant::from_secs(1_800_000_000);
        let holder = RunId::from_key(now, "r");
        let mut take = |name: &str, ttl, at: Instant| {
            let lock = LockName::parse(name).expect("a name");
            locks.take(LockTake { lock, holder, ttl }, RecordVersion::new(1, 1), at);
        };
        take("held", None, now.minus(day));
        take("old", Some(day), now.minus(day).minus(day));
        take("recent", Some(Span::from_secs(1)), now.minus(Span::from_secs(60)));
        take("#cronhold/request/1", Some(Span::from_secs(1)), now.minus(Span::from_secs(60)));
        take("#cronhold/request/2", Some(day), now.minus(Span::from_secs(60)));
        locks.expire(now.minus(day).minus(Span::from_secs(1)), now);
        let left: Vec<&str> = locks.0.keys().map(LockName::as_str).collect();
        assert_eq!(left, ["#cronhold/request/2", "held", "recent"]);
    }
}
