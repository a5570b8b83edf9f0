//! Recovery from a rollback of the store: a failover lost the last commits, or a server started with old data or with
//! none. Every process keeps a journal of its own writes. When the store has lost some of them, it rejects commits
//! until the live processes have restored theirs and all locks that are not renewed have expired.
//!
//! Only the process that made a commit can tell that it is lost. So after every restart and failover, which scripts
//! detect by the id of the server process, commits are rejected until every live node has sent a heartbeat.

mod commit_hold;
mod journal;
mod position;
mod seq_file;
#[cfg(test)]
mod tests;
mod unconfirmed;
mod verify;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use cronhold_core::record::Record;
use cronhold_schedule::Span;
use cronhold_store::Fault;
use cronhold_store::lock_mutex;
use redis::Value;
use tokio::time::Instant;

pub(crate) use journal::{LockWrite, RecordWrite};
pub(crate) use seq_file::SeqFile;

use crate::client::NamespaceClient;
use crate::codec::pack::Pack;
use crate::codec::{self, reply};
use crate::connections::Script;
use crate::cronken::{self, PeerFlag};
use crate::enrollment::SCHEMA;
use crate::{keys, notifications};
use commit_hold::CommitHold;
use journal::{JournaledWrite, WriteJournal};
use position::StorePosition;
use unconfirmed::{UnconfirmedUnit, UnconfirmedUnits};
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
    position: StorePosition,
    seq_file: Option<SeqFile>,
    journal: Mutex<WriteJournal>,
    /// Units whose reply was lost.
    unconfirmed: Mutex<UnconfirmedUnits>,
    /// Whether there are such units, so that reads need not ask.
    has_unconfirmed: AtomicBool,
    hold: CommitHold,
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
        process: &str,
        seq_file: Option<SeqFile>,
    ) -> Self {
        let saved = seq_file.as_ref().and_then(SeqFile::read);
        Self {
            client,
            peers,
            position: StorePosition::new(process, saved),
            seq_file,
            journal: Mutex::default(),
            unconfirmed: Mutex::default(),
            has_unconfirmed: AtomicBool::new(false),
            hold: CommitHold::default(),
            verifier: JournalVerifier::default(),
            restoring: tokio::sync::Mutex::default(),
            totals: Mutex::default(),
        }
    }

    /// The position of the store as scripts compare it: a text with the epoch and the own last commit, and the seq.
    pub(crate) fn position(&self) -> (String, u64) {
        self.position.script_args()
    }

    /// A writer has enrolled in this epoch.
    pub(crate) fn start_epoch(&self, epoch: String, seq: u64) {
        self.position.set(epoch, seq);
        self.save_position();
    }

    /// This process was assigned a writer number.
    pub(crate) fn record_writer(&self, writer: u32) {
        self.position.record_writer(writer);
    }

    /// The store has reached this seq.
    pub(crate) fn observe_seq(&self, seq: u64) {
        self.position.advance(seq);
    }

    /// A record was read or written. Its lease may prolong a recovery.
    pub(crate) fn observe_record(&self, record: &Record) {
        self.hold.observe_record(record);
    }

    /// A unit of this process was committed with this seq.
    pub(crate) fn record_commit(&self, seq: u64, version: &str, writes: Vec<RecordWrite>, locks: Vec<LockWrite>) {
        self.position.record_own(seq);
        if self.has_unconfirmed.load(Ordering::Acquire) {
            // The unit was submitted again after its first reply was lost.
            drop(self.take_unconfirmed(version));
        }
        // Reserved locks protect no program, so a recovery does not wait for them.
        locks.iter().filter(|lock| !lock.is_reserved()).for_each(|lock| self.hold.observe_lease(lock.ttl_millis));
        self.journal().record(seq, version, writes, locks, Instant::now());
    }

    /// The reply to a unit of this process was lost: it may have been committed.
    pub(crate) fn record_unconfirmed(&self, version: &str, writes: Vec<RecordWrite>, locks: Vec<LockWrite>) {
        lock_mutex(&self.unconfirmed).insert(version.to_owned(), UnconfirmedUnit { writes, locks });
        self.has_unconfirmed.store(true, Ordering::Release);
    }

    /// A record was read, in its stored form. If the reply to the unit that wrote it was lost, this confirms the unit.
    /// The fences of its locks follow when the locks are read.
    pub(crate) fn observe_stored(&self, value: &[u8]) {
        if self.has_unconfirmed.load(Ordering::Acquire)
            && let Some((version, seq)) = codec::version_and_seq(value)
            && let Some(UnconfirmedUnit { writes, locks }) = self.take_unconfirmed(version)
        {
            self.record_commit(seq, version, writes, locks);
        }
    }

    fn take_unconfirmed(&self, version: &str) -> Option<UnconfirmedUnit> {
        let mut unconfirmed = lock_mutex(&self.unconfirmed);
        let unit = unconfirmed.remove(version);
        self.has_unconfirmed.store(!unconfirmed.is_empty(), Ordering::Release);
        unit
    }

    /// A lock was read that the unit with this version has taken.
    pub(crate) fn observe_fence(&self, lock: &str, version: &str, fence: u64) {
        self.journal().set_fence(lock, version, fence);
    }

    /// Saves the position to the seq file, if there is one.
    pub(crate) fn save_position(&self) {
        if let Some(seq_file) = &self.seq_file {
            let (epoch, seq) = self.position.epoch_and_seq();
            seq_file.save(&epoch, seq, Instant::now());
        }
    }

    /// Another process has written a record with the commit `seq`, and is responsible for restoring it.
    pub(crate) fn forget(&self, kind: u8, field: &str, seq: u64) {
        self.journal().forget(kind, field, seq);
    }

    /// Sets the minimum time, in milliseconds, for which commits are rejected after a rollback.
    #[cfg(feature = "testing")]
    pub(crate) fn set_min_hold(&self, millis: u64) {
        self.hold.set_min(millis);
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
        let Ok(_guard) = self.restoring.try_lock() else { return self.recovering(self.hold.millis()) };
        match self.restore().await {
            Ok(()) => self.recovering(self.hold.millis()),
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
        Fault::Unavailable(format!(
            "{}: Redis has restarted or failed over, and commits are rejected for {}, so that each node can report what \
             was lost",
            self.client.connections().server_name(),
            Span::from_millis(millis)
        ))
    }

    async fn restore(&self) -> Result<(), Fault> {
        let Some(start) = self.begin().await? else { return Ok(()) };
        let lost = self.journal().written_after(start.own_seq);
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
            let locks: &[JournaledWrite<LockWrite>] = if is_last { &lost.locks } else { &[] };
            let reply = self.client.call(&RESTORE, self.restore_args(&start, part, locks, is_last)).await?;
            if let Value::BulkString(_) = reply {
                return Err(Fault::Unavailable("the store was rolled back once more".to_owned()));
            }
            if is_last {
                break;
            }
        }
        self.journal().start_generation();
        self.start_epoch(start.epoch, start.seq);
        let mut totals = lock_mutex(&self.totals);
        totals.rollbacks += 1;
        totals.records += count as u64;
        tracing::info!(event = "redis_records_restored", records = count, "restored {count} records");
        Ok(())
    }

    /// Starts a new epoch, so that all processes stop committing. `None` if there was no rollback after all.
    async fn begin(&self) -> Result<Option<RecoveryStart>, Fault> {
        let (position, seq) = self.position.script_args();
        let args = [
            self.client.namespace().to_owned(),
            position,
            seq.to_string(),
            self.client.unique_token(),
            self.hold.millis().to_string(),
            SCHEMA.to_owned(),
            self.position.writer().to_string(),
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
        records: &[JournaledWrite<RecordWrite>],
        locks: &[JournaledWrite<LockWrite>],
        is_last: bool,
    ) -> Vec<Vec<u8>> {
        let mut hints = Vec::new();
        let mut packed = Pack::default();
        packed.list(5 * records.len());
        for JournaledWrite { seq, version, write, .. } in records {
            packed.number(u64::from(write.kind));
            packed.text(&write.field);
            packed.text(format!("{seq:016x}"));
            packed.text(write.stored_text(version, *seq));
            packed.text(&write.projection);
            if let Some(key) = keys::kind(b'0' + write.kind).and_then(|kind| keys::key(kind, &write.field)) {
                notifications::write_field_hint(&key, &write.field, false, &mut hints);
            }
        }
        let mut packed_locks = Pack::default();
        packed_locks.list(4 * locks.len());
        for JournaledWrite { version, write, .. } in locks {
            packed_locks.text(&write.lock);
            packed_locks.text(&write.holder);
            packed_locks.text(write.restored_token(version));
            packed_locks.number(write.ttl_millis);
        }
        let own = if is_last { self.position.own_commit() } else { String::new() };
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

    fn journal(&self) -> MutexGuard<'_, WriteJournal> {
        lock_mutex(&self.journal)
    }
}
