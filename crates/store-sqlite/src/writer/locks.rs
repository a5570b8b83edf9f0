//! Lock rows: the holder, the expiry and the fence. The row of a free lock keeps its fence, so that fences only grow.

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, LockTake};
use cronhold_core::record::{LockName, RecordVersion};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{LockEntry, LockHold, UnitRefusal};
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

impl<'c> LockStatements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            find: connection.prepare("SELECT fence, holder, version, ttl, until FROM locks WHERE name = ?1")?,
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
        Ok(self.find(&take.lock)?.and_then(|entry| entry.refusal(take, free, now)))
    }

    /// Releases a lock if the run holds it.
    pub(super) fn free(&mut self, free: &LockRelease) -> rusqlite::Result<()> {
        self.free.execute((free.lock.as_str(), free.holder.to_string())).map(drop)
    }

    /// Takes a free lock and returns its fence. A run that already holds the lock keeps its fence.
    pub(super) fn take(&mut self, take: &LockTake, version: RecordVersion, now: Instant) -> rusqlite::Result<u64> {
        let mut entry = self.find(&take.lock)?.unwrap_or_default();
        let fence = entry.acquire(take, version, now);
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

    fn find(&mut self, name: &LockName) -> rusqlite::Result<Option<LockEntry>> {
        self.find.query_row([name.as_str()], read_entry).optional()
    }
}

fn read_entry(row: &Row<'_>) -> rusqlite::Result<LockEntry> {
    let [version, ttl] = [row.get::<_, Option<u64>>(2)?, row.get(3)?];
    let until = row.get::<_, Option<i64>>(4)?.map(Instant::from_micros);
    // A holder that is not a run id does not count.
    let holder = row.get::<_, Option<String>>(1)?.and_then(|holder| RunId::parse(&holder).ok());
    let hold = holder.map(|holder| LockHold {
        holder,
        version: RecordVersion::from_bits(version.unwrap_or(0)),
        ttl: ttl.map(Span::from_micros),
        until,
    });
    Ok(LockEntry { fence: row.get(0)?, hold })
}
