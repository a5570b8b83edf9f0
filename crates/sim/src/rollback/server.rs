//! The store's part of a recovery, on typed records: what `prelude.lua`, `begin_recovery.lua` and `restore.lua` do in the
//! Redis store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use cronhold_core::RunId;
use cronhold_core::decision::{LockTake, RecordChange};
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey, RecordVersion, StoredRecord};
use cronhold_schedule::Span;
use cronhold_store::memory::MemorySnapshot;
use cronhold_store::rollback::{CommitHold, JournaledLock, LostWrites, StorePosition, wins_merge};
use cronhold_store::{Fault, MemoryStore, Store, Unit, UnitReceipt, UnitRefusal, WriterId, lock_mutex};

use crate::time::SimTime;

/// Lost commits may have had higher seqs than any that is known. The next commits are certainly above them.
const SEQ_GAP: u64 = 1 << 20;

/// A request with the position that its sender has seen.
#[derive(Debug, Clone)]
pub(crate) struct StoreRequest {
    /// Identifies the process that sends it.
    pub(crate) process: u64,
    pub(crate) position: StorePosition,
}

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PositionRefusal {
    /// The store misses commits that the sender has seen.
    RolledBack,
    /// Commits are rejected for a while.
    Held,
}

/// The reply to a commit.
#[derive(Debug)]
pub(crate) struct CommitReply {
    pub(crate) seq: u64,
    pub(crate) results: Vec<Result<UnitReceipt, UnitRefusal>>,
}

/// The reply to the first request of a recovery.
#[derive(Debug)]
pub(crate) struct RecoveryReply {
    pub(crate) epoch: String,
    pub(crate) seq: u64,
    /// The last commit of the sender that the store still has.
    pub(crate) own_seq: u64,
}

/// The store of all machines, and what it keeps to detect rollbacks.
#[derive(Debug)]
pub(crate) struct RollbackServer {
    store: MemoryStore,
    time: SimTime,
    /// For how long commits are rejected after a restart.
    restart_hold: Span,
    state: Mutex<ServerState>,
}

#[derive(Debug, Default)]
struct ServerState {
    /// The number of the current process of the server.
    server: u64,
    meta: ServerMeta,
    /// Files by the number of their scenario event.
    files: BTreeMap<usize, (MemorySnapshot, ServerMeta)>,
    is_recovering: bool,
    /// Epochs so far.
    epochs: u64,
}

/// What is stored beside the records, and is rolled back with them.
#[derive(Debug, Clone, Default)]
struct ServerMeta {
    /// Empty before the first writer has enrolled.
    epoch: String,
    past_epochs: Vec<String>,
    seq: u64,
    /// The last commit of each process.
    own_seqs: BTreeMap<u64, u64>,
    /// The server process that the latest commits were made on.
    server: u64,
    /// Until when commits are rejected.
    hold_until: Span,
    /// The commit that wrote each record.
    seqs: BTreeMap<RecordKey, u64>,
    /// Restored deletions.
    deletions: BTreeMap<RecordKey, u64>,
}

impl ServerMeta {
    fn hold_commits(&mut self, until: Span) {
        self.hold_until = self.hold_until.max(until);
    }

    fn own_seq(&self, process: u64) -> u64 {
        self.own_seqs.get(&process).copied().unwrap_or(0)
    }

    fn is_rolled_back(&self, StoreRequest { process, position }: &StoreRequest) -> bool {
        let has_own = self.own_seq(*process) >= position.own_seq;
        !position.epoch.is_empty() && (self.epoch != position.epoch || self.seq < position.seq || !has_own)
    }
}

impl RollbackServer {
    /// `holds_after_restart` is false only to check that checkers detect it.
    pub(crate) fn new(store: MemoryStore, time: SimTime, holds_after_restart: bool) -> Self {
        let restart_hold = if holds_after_restart { CommitHold::after_restart() } else { Span::ZERO };
        Self { store, time, restart_hold, state: Mutex::default() }
    }

    /// Writes a file with the current contents.
    pub(crate) fn take_snapshot(&self, number: usize) {
        let mut state = self.lock();
        let file = (self.store.snapshot(), state.meta.clone());
        state.files.insert(number, file);
    }

    /// Restarts with a file.
    pub(crate) fn restart_with_snapshot(&self, number: usize) {
        let mut state = self.lock();
        let Some((snapshot, meta)) = state.files.remove(&number) else { return };
        self.store.roll_back(snapshot);
        state.meta = meta;
        state.server += 1;
        state.is_recovering = true;
    }

    pub(crate) fn is_recovering(&self) -> bool {
        self.lock().is_recovering
    }

    /// Ends the recovery if a node has contacted the server and commits are accepted again. Returns whether it did.
    pub(crate) fn end_recovery(&self) -> bool {
        let mut state = self.lock();
        let is_over = state.meta.server == state.server && self.time.now() >= state.meta.hold_until;
        state.is_recovering &= !is_over;
        is_over
    }

    /// Assigns a number to a writer. The reply has the epoch and the seq.
    pub(crate) async fn enroll(
        &self,
        store: &dyn Store,
        request: &StoreRequest,
    ) -> Result<Result<(WriterId, String, u64), PositionRefusal>, Fault> {
        if let Err(refusal) = self.check(request, true) {
            return Ok(Err(refusal));
        }
        let writer = store.enroll().await?;
        let mut state = self.lock();
        if state.meta.epoch.is_empty() {
            state.meta.epoch = state.next_epoch();
            state.meta.server = state.server;
        }
        Ok(Ok((writer, state.meta.epoch.clone(), state.meta.seq)))
    }

    pub(crate) async fn commit(
        &self,
        store: &dyn Store,
        request: &StoreRequest,
        units: Vec<Unit>,
    ) -> Result<CommitReply, PositionRefusal> {
        self.check(request, true)?;
        let changed: Vec<Vec<RecordKey>> =
            units.iter().map(|unit| unit.changes.iter().map(RecordChange::key).collect()).collect();
        let results = store.commit(units).await;
        let mut state = self.lock();
        let meta = &mut state.meta;
        if results.iter().any(Result::is_ok) {
            meta.seq += 1;
            meta.own_seqs.insert(request.process, meta.seq);
        }
        for (keys, _) in changed.into_iter().zip(&results).filter(|(_, result)| result.is_ok()) {
            meta.seqs.extend(keys.into_iter().map(|key| (key, meta.seq)));
        }
        Ok(CommitReply { seq: meta.seq, results })
    }

    /// Heartbeats continue while commits are rejected. The reply has the seq and the lost locks.
    pub(crate) async fn beat(
        &self,
        store: &dyn Store,
        request: &StoreRequest,
        node: &NodeRecord,
        locks: &[(LockName, RunId)],
    ) -> Result<Result<(u64, Vec<(LockName, RunId)>), PositionRefusal>, Fault> {
        if let Err(refusal) = self.check(request, false) {
            return Ok(Err(refusal));
        }
        self.take_expired_locks(locks).await;
        let lost = store.beat(node, locks).await?;
        let mut state = self.lock();
        let seq = state.meta.seq;
        if request.position.own_seq > 0 {
            state.meta.own_seqs.insert(request.process, seq);
        }
        Ok(Ok((seq, lost)))
    }

    /// Compares records with the journal of a process. Returns those that have another version.
    pub(crate) async fn verify(
        &self,
        request: &StoreRequest,
        entries: Vec<(RecordKey, RecordVersion)>,
    ) -> Result<Vec<(RecordKey, RecordVersion)>, PositionRefusal> {
        self.check(request, true)?;
        let keys: Vec<RecordKey> = entries.iter().map(|(key, _)| key.clone()).collect();
        let stored = self.store.load(&keys).await.unwrap_or_default();
        let versions = stored.into_iter().map(|stored| stored.map(|stored| stored.version));
        let changed = entries.into_iter().zip(versions).filter(|((_, version), stored)| *stored != Some(*version));
        Ok(changed.map(|(entry, _)| entry).collect())
    }

    /// Starts a recovery; `None` if there was no rollback.
    pub(crate) fn begin_recovery(&self, request: &StoreRequest, hold: Span, writer: u32) -> Option<RecoveryReply> {
        let now = self.time.now();
        let mut state = self.lock();
        if !state.meta.is_rolled_back(request) {
            return None;
        }
        let new_epoch = state.next_epoch();
        let (server, meta) = (state.server, &mut state.meta);
        let StoreRequest { process, position } = request;
        let own_seq = meta.own_seq(*process);
        let is_known = meta.epoch != position.epoch && meta.past_epochs.contains(&position.epoch);
        let reached = position.seq.max(position.own_seq);
        if !is_known {
            meta.past_epochs.push(position.epoch.clone());
            let before = std::mem::replace(&mut meta.epoch, new_epoch);
            meta.past_epochs.push(before);
            meta.seq = meta.seq.max(reached) + SEQ_GAP;
        } else if meta.seq <= reached {
            meta.seq = reached + SEQ_GAP;
        }
        meta.server = server;
        if !is_known || own_seq < position.own_seq {
            meta.hold_commits(now.plus(hold));
        }
        self.store.raise_writers(writer);
        Some(RecoveryReply { epoch: meta.epoch.clone(), seq: meta.seq, own_seq })
    }

    /// Restores what a process has written. Returns false if the epoch has changed.
    pub(crate) async fn restore(&self, process: u64, epoch: &str, own_seq: u64, lost: LostWrites) -> bool {
        let keys: Vec<RecordKey> = lost.records.iter().map(|entry| entry.change.key()).collect();
        let stored = self.store.load(&keys).await.unwrap_or_default();
        let mut state = self.lock();
        let meta = &mut state.meta;
        if meta.epoch != epoch {
            return false;
        }
        let mut restored = Vec::new();
        for ((key, entry), stored) in keys.into_iter().zip(lost.records).zip(stored) {
            let deleted = meta.deletions.get(&key).copied().unwrap_or(0);
            let stored_seq = meta.seqs.get(&key).copied().unwrap_or(0);
            let stored = stored.as_ref().map(|stored| (stored_seq, &stored.record));
            let wins = wins_merge(entry.seq, &entry.change, stored, deleted);
            if matches!(entry.change, RecordChange::Delete(_)) {
                meta.deletions.insert(key.clone(), deleted.max(entry.seq));
            }
            if wins {
                meta.seqs.insert(key.clone(), entry.seq);
                let record = match entry.change {
                    RecordChange::Put(record) => Some(StoredRecord { version: entry.version, record }),
                    RecordChange::Delete(_) => None,
                };
                restored.push((key, record));
            }
        }
        meta.own_seqs.insert(process, own_seq);
        self.store.restore(restored, &lost.locks);
        true
    }

    /// Takes locks for their holders again that have expired because their renewals are lost. While commits are rejected,
    /// no other run can have taken them.
    async fn take_expired_locks(&self, locks: &[(LockName, RunId)]) {
        if self.time.now() >= self.lock().meta.hold_until {
            return;
        }
        let keys: Vec<RecordKey> = locks.iter().map(|(_, run)| RecordKey::Run(*run)).collect();
        let runs = self.store.load(&keys).await.unwrap_or_default();
        let expired = locks.iter().zip(runs).filter_map(|((lock, holder), run)| {
            let Record::Run(run) = run?.record else { return None };
            let take = LockTake { lock: lock.clone(), holder: *holder, ttl: run.terms.lease };
            Some(JournaledLock { seq: 0, version: RecordVersion::from_bits(0), take, fence: None })
        });
        self.store.restore(Vec::new(), &expired.collect::<Vec<_>>());
    }

    /// Compares the position of a request with the store. Detects a restart first, as every script does.
    fn check(&self, request: &StoreRequest, is_commit: bool) -> Result<(), PositionRefusal> {
        let now = self.time.now();
        let mut state = self.lock();
        let (server, meta) = (state.server, &mut state.meta);
        if !meta.epoch.is_empty() && meta.server != server {
            meta.server = server;
            meta.hold_commits(now.plus(self.restart_hold));
        }
        if meta.is_rolled_back(request) {
            return Err(PositionRefusal::RolledBack);
        }
        if is_commit && now < meta.hold_until { Err(PositionRefusal::Held) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, ServerState> {
        lock_mutex(&self.state)
    }
}

impl ServerState {
    fn next_epoch(&mut self) -> String {
        self.epochs += 1;
        format!("epoch {}", self.epochs)
    }
}
