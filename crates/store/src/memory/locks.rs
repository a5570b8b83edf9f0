//! Locks with a time to live. The fence of a lock is remembered after it is free, so that it only ever grows.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::decision::{Free, Take};
use cronhold_core::record::{LockName, LockState, Record, Stored, Version};
use cronhold_schedule::{Instant, Span};

/// All locks that were ever taken.
#[derive(Debug, Default)]
pub(super) struct Locks(BTreeMap<LockName, Lock>);

#[derive(Debug, Default)]
struct Lock {
    /// The fence of the latest holder.
    fence: u64,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    by: RunId,
    /// The unit that took it.
    version: Version,
    ttl: Option<Span>,
    until: Option<Instant>,
}

impl Held {
    fn lasts(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl Locks {
    /// Who holds a lock.
    pub(super) fn holder(&self, name: &LockName, now: Instant) -> Option<RunId> {
        self.held(name, now).map(|(held, _)| held.by)
    }

    /// A lock that someone holds, as a record.
    pub(super) fn load(&self, name: &LockName, now: Instant) -> Option<Stored> {
        let (held, fence) = self.held(name, now)?;
        let lock = LockState { name: name.clone(), holder: held.by, fence, until: held.until };
        Some(Stored { version: held.version, record: Record::Lock(Arc::new(lock)) })
    }

    /// Frees a lock, if the run holds it. Answers whether it did.
    pub(super) fn free(&mut self, free: &Free, now: Instant) -> bool {
        let lock = self.0.get_mut(&free.lock);
        let freed = lock.and_then(|lock| lock.held.take_if(|held| held.by == free.holder));
        freed.is_some_and(|held| held.lasts(now))
    }

    /// Takes a lock that nobody else holds, and answers with its fence. A run that holds it already keeps its fence.
    pub(super) fn take(&mut self, take: Take, version: Version, now: Instant) -> u64 {
        let Take { lock, holder, ttl } = take;
        let lock = self.0.entry(lock).or_default();
        let is_held = lock.held.as_ref().is_some_and(|held| held.lasts(now));
        if !is_held {
            let millis = u64::try_from(now.millis()).unwrap_or(0);
            lock.fence = millis.max(lock.fence + 1);
        }
        lock.held = Some(Held { by: holder, version, ttl, until: ttl.map(|ttl| now.plus(ttl)) });
        lock.fence
    }

    /// Holds a lock for its time to live from now on. Answers whether the run still had it.
    pub(super) fn renew(&mut self, name: &LockName, holder: RunId, now: Instant) -> bool {
        let held = self.0.get_mut(name).and_then(|lock| lock.held.as_mut());
        let Some(held) = held.filter(|held| held.by == holder && held.lasts(now)) else { return false };
        held.until = held.ttl.map(|ttl| now.plus(ttl));
        true
    }

    fn held(&self, name: &LockName, now: Instant) -> Option<(&Held, u64)> {
        let lock = self.0.get(name)?;
        lock.held.as_ref().filter(|held| held.lasts(now)).map(|held| (held, lock.fence))
    }
}
