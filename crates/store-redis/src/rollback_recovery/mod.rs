//! Recovery from a rollback of the store: a failover lost the last commits, or a server started with old data or with
//! none. Every process keeps a journal of its own writes (`store/rollback`). When the store has lost some of them, it rejects commits
//! until the live processes have restored theirs and all locks that are not renewed have expired.
//!
//! Only the process that made a commit can tell that it is lost. So after every restart and failover, which scripts
//! detect by the id of the server process, commits are rejected until every live node has sent a heartbeat.

mod seq_file;
mod verify;

use std::sync::{Arc, LazyLock, Mutex};

use cronhold_core::RunId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LockName, Record, RecordKey, RecordVersion};
use cronhold_schedule::Span;
use cronhold_store::rollback::{JournaledLock, JournaledRecord, RollbackTracker, StorePosition, UnitWrites};
use cronhold_store::{Fault, lock_mutex};
use redis::Value;
use tokio::time::Instant;

pub(crate) use seq_file::SeqFile;

use crate::client::NamespaceClient;
use crate::codec::pack::Pack;
use crate::codec::{self, reply};
use crate::connections::Script;
use crate::cronken::{self, PeerFlag, Projector};
use crate::enrollment::SCHEMA;
use crate::packed_unit::ttl_millis;
use crate::{keys, notifications};
use verify::JournalVerifier;

/// Records of one script call. While a script runs, the server serves no other request.
const RECORDS_PER_CALL: usize = 200;

/// Why commits are rejected after a restart, see `prelude.lua`.
const RESTART: &[u8] = b"restart";

static BEGIN: LazyLock<Script> = LazyLock::new(|| {
    Script::on_namespace(&[include_str!("../scripts/generation.lua"), include_str!("../scripts/begin_recovery.lua")])
});

static RESTORE: LazyLock<Script> = LazyLock::new(|| {
    Script::on_namespace(&[
        include_str!("../scripts/generation.lua"),
        include_str!("../scripts/records.lua"),
        cronken::PROJECTION_SCRIPTS[0],
        cronken::PROJECTION_SCRIPTS[1],
        include_str!("../scripts/restore.lua"),
    ])
});

/// Detects rollbacks, and restores what this process has written.
#[derive(Debug)]
pub(crate) struct RollbackRecovery {
    client: Arc<NamespaceClient>,
    peers: Arc<PeerFlag>,
    projector: Arc<Projector>,
    tracker: RollbackTracker,
    /// The field of `meta` in which the store keeps the last commit of this process.
    own_field: String,
    /// When this process began.
    begin: Instant,
    seq_file: Option<SeqFile>,
    verifier: JournalVerifier,
    /// Held while this process restores records.
    restoring: tokio::sync::Mutex<()>,
    totals: Mutex<RecoveryTotals>,
}

/// Totals since the process started, for the warning in health reports.
#[derive(Debug, Default)]
struct RecoveryTotals {
    rollbacks: u64,
    records: u64,
}

/// The state of the store when a recovery begins.
struct RecoveryStart {
    epoch: String,
    seq: u64,
    /// The last commit of this process that the store still has.
    own_seq: u64,
}

impl RollbackRecovery {
    /// `process` identifies this process; the seq file has the position that an earlier process reached.
    pub(crate) fn new(
        client: Arc<NamespaceClient>,
        peers: Arc<PeerFlag>,
        projector: Arc<Projector>,
        process: &str,
        seq_file: Option<SeqFile>,
    ) -> Self {
        let saved = seq_file.as_ref().and_then(SeqFile::read);
        Self {
            client,
            peers,
            projector,
            tracker: RollbackTracker::new(saved),
            own_field: format!("by:{process}"),
            begin: Instant::now(),
            seq_file,
            verifier: JournalVerifier::default(),
            restoring: tokio::sync::Mutex::default(),
            totals: Mutex::default(),
        }
    }

    /// The position of the store as scripts compare it: epoch, field and last commit of this process as one text, which is
    /// empty before the first contact; and the seq.
    pub(crate) fn position(&self) -> (String, u64) {
        let StorePosition { epoch, seq, own_seq } = self.tracker.position();
        let text = if epoch.is_empty() { String::new() } else { format!("{epoch} {} {own_seq}", self.own_field) };
        (text, seq)
    }

    /// A writer has enrolled in this epoch.
    pub(crate) fn start_epoch(&self, epoch: String, seq: u64) {
        self.tracker.start_epoch(epoch, seq);
        self.save_position();
    }

    /// This process was assigned a writer number.
    pub(crate) fn record_writer(&self, writer: u32) {
        self.tracker.record_writer(writer);
    }

    /// The store has reached this seq.
    pub(crate) fn observe_seq(&self, seq: u64) {
        self.tracker.observe_seq(seq);
    }

    /// A record was read or written. Its lease may prolong a recovery.
    pub(crate) fn observe_record(&self, record: &Record) {
        self.tracker.observe_record(record);
    }

    /// A unit of this process was committed with this seq, and took locks with these fences.
    pub(crate) fn record_commit(&self, seq: u64, writes: UnitWrites, fences: &[(LockName, u64)]) {
        self.tracker.record_commit(seq, writes, fences, self.uptime());
    }

    /// The reply to a unit of this process was lost: it may have been committed.
    pub(crate) fn record_unconfirmed(&self, writes: UnitWrites) {
        self.tracker.record_unconfirmed(writes);
    }

    /// A record was read, in its stored form. If the reply to the unit that wrote it was lost, this confirms the unit.
    pub(crate) fn observe_stored(&self, value: &[u8]) {
        if self.tracker.has_unconfirmed()
            && let Some((version, seq)) = codec::version_and_seq(value)
        {
            self.tracker.observe_version(version, seq, self.uptime());
        }
    }

    /// A lock was read that the unit with this version has taken.
    pub(crate) fn observe_fence(&self, lock: &LockName, version: RecordVersion, fence: u64) {
        self.tracker.observe_fence(lock, version, fence);
    }

    /// The time to live of a lock that a run of this node holds, in milliseconds. If an earlier process of the node has
    /// taken the lock, it is unknown, and the longest that can be needed is used.
    pub(crate) fn lock_millis(&self, lock: &LockName, holder: RunId) -> u64 {
        self.tracker.lock_ttl(lock, holder).map_or_else(|| self.hold_millis(), ttl_millis)
    }

    /// Saves the position to the seq file, if there is one.
    pub(crate) fn save_position(&self) {
        if let Some(seq_file) = &self.seq_file {
            let StorePosition { epoch, seq, .. } = self.tracker.position();
            seq_file.save(&epoch, seq, Instant::now());
        }
    }

    /// Another process has written a record with the commit `seq`, and is responsible for restoring it.
    pub(crate) fn forget(&self, key: &RecordKey, seq: u64) {
        self.tracker.forget(key, seq);
    }

    /// Sets the minimum time, in milliseconds, for which commits are rejected after a rollback.
    #[cfg(feature = "testing")]
    pub(crate) fn set_min_hold(&self, millis: u64) {
        self.tracker.hold().set_min(Span::from_millis(millis));
    }

    /// What recoveries have restored; `None` if there was no rollback.
    pub(crate) fn warning(&self) -> Option<String> {
        let totals = lock_mutex(&self.totals);
        (totals.rollbacks > 0).then(|| {
            let RecoveryTotals { rollbacks, records } = *totals;
            format!(
                "Redis was rolled back to an earlier state {rollbacks} times since this process started; {records} records \
                 were restored, and outputs were not"
            )
        })
    }

    /// Verifies the whole journal, after notifications were lost.
    pub(crate) async fn verify_all(&self) {
        self.verifier.verify_all(self).await;
    }

    /// Verifies a part of the journal.
    pub(crate) async fn verify_some(&self) {
        self.verifier.verify_some(self).await;
    }

    /// The reply of a script, unless the script rejected the request because of a rollback. In that case this process
    /// restores its writes first.
    pub(crate) async fn check_reply(&self, reply: Vec<Value>) -> Result<Vec<Value>, Fault> {
        let code = match reply.first() {
            Some(Value::BulkString(code)) => code.as_slice(),
            _ => return Ok(reply),
        };
        match code {
            b"healing" => {
                let rest = reply.get(1).map_or(Ok(0), reply::number)?;
                let rest = u64::try_from(rest).unwrap_or(0);
                let is_restart = matches!(reply.get(2), Some(Value::BulkString(why)) if why == RESTART);
                Err(if is_restart { self.restarted(rest) } else { self.recovering(rest) })
            }
            b"back" => Err(self.recover().await),
            _ => Err(reply::unexpected("a status of a script", &reply[0])),
        }
    }

    /// Restores what this process has written, and returns the fault for the rejected request.
    async fn recover(&self) -> Fault {
        let Ok(_guard) = self.restoring.try_lock() else { return self.recovering(self.hold_millis()) };
        match self.restore().await {
            Ok(()) => self.recovering(self.hold_millis()),
            // A part may be restored. Restoring it again does no harm.
            Err(fault) => {
                let server = self.client.connections().server_name();
                Fault::Recovering(format!("{server}: cannot restore lost records yet ({fault})"))
            }
        }
    }

    /// The fault while commits are rejected, for this many milliseconds from now on.
    fn recovering(&self, millis: u64) -> Fault {
        Fault::Recovering(format!(
            "{}: nodes restore what it has lost, and commits are rejected for at most {}; the time restarts when another \
             node finds records missing",
            self.client.connections().server_name(),
            Span::from_millis(millis)
        ))
    }

    /// The fault while commits are rejected after a restart or a failover, for this many milliseconds from now on.
    fn restarted(&self, millis: u64) -> Fault {
        Fault::Restarted(format!(
            "{}: commits are rejected for {}, so that each node can report what was lost",
            self.client.connections().server_name(),
            Span::from_millis(millis)
        ))
    }

    async fn restore(&self) -> Result<(), Fault> {
        let Some(start) = self.begin().await? else { return Ok(()) };
        let lost = self.tracker.lost_after(start.own_seq);
        let count = lost.records.len();
        let RecoveryStart { seq, own_seq, .. } = &start;
        tracing::warn!(
            event = "redis_rolled_back",
            seq,
            own_seq,
            records = count,
            "Redis has lost commits; restoring {count} records"
        );
        let mut records = lost.records.chunks(RECORDS_PER_CALL);
        // At least one call, because it also stores the last commit of this process.
        loop {
            let part = records.next().unwrap_or_default();
            let is_last = records.len() == 0;
            // Locks come last: by then it is known which of their runs have ended.
            let locks: &[JournaledLock] = if is_last { &lost.locks } else { &[] };
            let reply = self.client.call(&RESTORE, self.restore_args(&start, part, locks, is_last)).await?;
            if let Value::BulkString(_) = reply {
                return Err(Fault::Unavailable("the store was rolled back once more".to_owned()));
            }
            if is_last {
                break;
            }
        }
        self.tracker.complete_recovery(start.epoch, start.seq);
        self.save_position();
        let mut totals = lock_mutex(&self.totals);
        totals.rollbacks += 1;
        totals.records += count as u64;
        tracing::info!(event = "redis_records_restored", records = count, "restored {count} records");
        Ok(())
    }

    /// Starts a new epoch, so that all processes stop committing. `None` if there was no rollback after all.
    async fn begin(&self) -> Result<Option<RecoveryStart>, Fault> {
        let (position, seq) = self.position();
        let args = [
            self.client.namespace().to_owned(),
            position,
            seq.to_string(),
            self.client.unique_token(),
            self.hold_millis().to_string(),
            SCHEMA.to_owned(),
            self.tracker.writer().to_string(),
            self.peers.known_word().to_owned(),
        ];
        let args = args.into_iter().map(String::into_bytes).collect();
        let mut reply = reply::list(self.client.call(&BEGIN, args).await?)?.into_iter();
        let mut next = || reply.next().unwrap_or(Value::Nil);
        let epoch = reply::text(next())?;
        if epoch.is_empty() {
            return Ok(None);
        }
        let (seq, own_seq) = (reply::number(&next())?.cast_unsigned(), reply::number(&next())?.cast_unsigned());
        Ok(Some(RecoveryStart { epoch, seq, own_seq }))
    }

    fn restore_args(
        &self,
        start: &RecoveryStart,
        records: &[JournaledRecord],
        locks: &[JournaledLock],
        is_last: bool,
    ) -> Vec<Vec<u8>> {
        let mut hints = Vec::new();
        let mut packed = Pack::default();
        packed.list(5 * records.len());
        for entry in records {
            let key = entry.change.key();
            let field = keys::field(&key);
            notifications::write_field_hint(&key, &field, false, &mut hints);
            packed.number(u64::from(keys::digit(key.kind())));
            packed.text(&field);
            packed.text(format!("{:016x}", entry.seq));
            packed.text(stored_text(entry));
            packed.text(match &entry.change {
                RecordChange::Put(record) => self.projector.project(record).to_text(),
                RecordChange::Delete(_) => Vec::new(),
            });
        }
        let mut packed_locks = Pack::default();
        packed_locks.list(4 * locks.len());
        for entry in locks {
            packed_locks.text(entry.take.lock.as_str());
            packed_locks.text(entry.take.holder.to_string());
            packed_locks.text(restored_token(entry));
            packed_locks.number(entry.take.ttl.map_or(0, ttl_millis));
        }
        let own =
            if is_last { format!("{} {}", self.own_field, self.tracker.position().own_seq) } else { String::new() };
        vec![
            self.client.namespace_arg(),
            self.peers.projection_settings().as_bytes().to_vec(),
            start.epoch.clone().into_bytes(),
            own.into_bytes(),
            hints,
            packed.into_bytes(),
            packed_locks.into_bytes(),
        ]
    }

    /// How long commits are rejected after a rollback, in milliseconds.
    fn hold_millis(&self) -> u64 {
        self.tracker.hold().span().micros().div_ceil(1_000)
    }

    fn uptime(&self) -> Span {
        Span::from_micros(u64::try_from(self.begin.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// A record as it is stored; empty if it was deleted.
fn stored_text(entry: &JournaledRecord) -> Vec<u8> {
    let RecordChange::Put(record) = &entry.change else { return Vec::new() };
    let mut text = format!("{} {:016x} ", codec::version_text(entry.version), entry.seq).into_bytes();
    text.extend_from_slice(&codec::body(record));
    text
}

/// The token of a restored lock. It ends with a fixed word where others have a random text.
fn restored_token(entry: &JournaledLock) -> String {
    let JournaledLock { version, take, fence, .. } = entry;
    let (fence, ttl) = (fence.unwrap_or(0), take.ttl.map_or(0, ttl_millis));
    format!("{}:{fence}:{}:{ttl}:brought-back", take.holder, codec::version_text(*version))
}
