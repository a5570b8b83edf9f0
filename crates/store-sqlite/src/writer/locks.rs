//! Lock rows: the holder, the expiry and the fence. The row of a free lock keeps its fence, so that fences only grow.

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, LockTake};
use cronhold_core::record::{LockName, RecordVersion};
use cronhold_schedule::{Instant, Span};
use cronhold_store::UnitRefusal;
use rusqlite::{Connection, OptionalExtension, Row, Statement};

use crate::rows::version_value;

/// The writer's statements on locks.
#[derive(Debug)]
pub(super) struct LockStatements<'c> {
    find: Statement<'c>,
    free: Statement<'c>,
    take: Statement<'c>,
    expire: Statement<'c>,
    renew: Statement<'c>,
}

struct StoredLock {
    fence: u64,
    holder: Option<String>,
    until: Option<i64>,
}

impl StoredLock {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { fence: row.get(0)?, holder: row.get(1)?, until: row.get(2)? })
    }

    /// The holder; `None` if the lock is free or expired.
    fn holder(&self, now: Instant) -> Option<RunId> {
        let lasts = self.until.is_none_or(|until| now.micros() < until);
        // A holder that is not a run id does not count.
        self.holder.as_ref().filter(|_| lasts).and_then(|holder| RunId::parse(holder).ok())
    }
}

impl<'c> LockStatements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            find: connection.prepare("SELECT fence, holder, until FROM locks WHERE name = ?1")?,
            free: connection.prepare(
                "UPDATE locks SET holder = NULL, version = NULL, ttl = NULL, until = NULL \
                 WHERE name = ?1 AND holder = ?2",
            )?,
            take: connection.prepare(
                "INSERT INTO locks (name, fence, holder, version, ttl, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                 ON CONFLICT DO UPDATE SET fence = ?2, holder = ?3, version = ?4, ttl = ?5, until = ?6",
            )?,
            expire: connection.prepare(&format!(
                "DELETE FROM locks WHERE (holder IS NULL OR until <= ?1) AND (fence < ?2 OR {})",
                LockName::MARKS.map(|prefix| format!("name GLOB '{prefix}*'")).join(" OR "),
            ))?,
            renew: connection.prepare(
                "UPDATE locks SET until = ?3 + ttl \
                 WHERE name = ?1 AND holder = ?2 AND (until IS NULL OR until > ?3)",
            )?,
        })
    }

    /// The refusal if another run holds the lock and does not release it in the same unit.
    pub(super) fn refusal(
        &mut self,
        take: &LockTake,
        free: &[LockRelease],
        now: Instant,
    ) -> rusqlite::Result<Option<UnitRefusal>> {
        let Some(holder) = self.find(&take.lock)?.and_then(|found| found.holder(now)) else { return Ok(None) };
        let is_freed = free.iter().any(|free| free.lock == take.lock && free.holder == holder);
        let is_free = holder == take.holder || is_freed;
        Ok((!is_free).then(|| UnitRefusal::Held { lock: take.lock.clone(), holder }))
    }

    /// Releases a lock if the run holds it.
    pub(super) fn free(&mut self, free: &LockRelease) -> rusqlite::Result<()> {
        self.free.execute((free.lock.as_str(), free.holder.to_string())).map(drop)
    }

    /// Takes a free lock and returns its fence. A run that already holds the lock keeps its fence.
    pub(super) fn take(&mut self, take: &LockTake, version: RecordVersion, now: Instant) -> rusqlite::Result<u64> {
        let found = self.find(&take.lock)?;
        let (fence, is_held) = found.map_or((0, false), |found| (found.fence, found.holder(now).is_some()));
        let millis = u64::try_from(now.millis()).unwrap_or(0);
        let fence = if is_held { fence } else { millis.max(fence.saturating_add(1)) };
        let ttl = take.ttl.map(Span::micros);
        let until = take.ttl.map(|ttl| now.plus(ttl).micros());
        let name = take.lock.as_str();
        self.take.execute((name, fence, take.holder.to_string(), version_value(version), ttl, until))?;
        Ok(fence)
    }

    /// Deletes free locks that were last taken before a time, and marks that have expired.
    pub(super) fn expire(&mut self, before: Instant, now: Instant) -> rusqlite::Result<()> {
        self.expire.execute((now.micros(), before.millis())).map(drop)
    }

    /// Renews a lock for its time to live. Returns false if the run has lost it.
    pub(super) fn renew(&mut self, name: &LockName, holder: RunId, now: Instant) -> rusqlite::Result<bool> {
        Ok(self.renew.execute((name.as_str(), holder.to_string(), now.micros()))? > 0)
    }

    fn find(&mut self, name: &LockName) -> rusqlite::Result<Option<StoredLock>> {
        self.find.query_row([name.as_str()], StoredLock::read).optional()
    }
}
