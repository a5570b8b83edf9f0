//! Commits units. Each round decides all units whose result is open by what is known, sends the accepted ones in few
//! transactions, and keeps the results of those transactions that took effect. A unit is refused only by what was read
//! in this commit.

mod lock_view;
mod output_view;
mod plan;
mod sender;
mod transaction_unit;
mod turn;

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::RecordKey;
use cronhold_store::{Fault, HandleId, SeedlessMap, StoreLimits, UnitReceipt, UnitRefusal};
use cronhold_store_remote::WriteCounters;

use self::lock_view::LockView;
use self::output_view::OutputView;
use self::plan::{CommitPart, CommitView, UnitResult, plan_commit};
use self::sender::{BlockedWrite, CommitSender, SentParts};
pub(crate) use self::transaction_unit::TransactionUnit;
pub(crate) use self::turn::CommitTurn;
use self::turn::TurnQueue;
use crate::castle::{NextJobWriter, ScheduleOverlay};
use crate::ensemble::Ensemble;
use crate::known_znodes::{KnownZnode, KnownZnodes};
use crate::outputs::Outputs;
use crate::record_text;
use crate::wire::{ZnodeWrite, ZooKeeperSession};
use crate::writer_registry::WriterRegistry;

/// Rounds of one commit. Each but the first begins because another process changed a znode just before.
const ROUNDS_MAX: usize = 64;

/// Znodes of one read.
const READS_MAX: usize = 2_000;

/// Why a commit ends without a result for some units.
const CONTENDED: &str = "other processes keep changing the same locks or records";

/// Commits units, one commit at a time.
#[derive(Debug)]
pub(crate) struct ZnodeCommitter {
    ensemble: Arc<Ensemble>,
    known: Arc<KnownZnodes>,
    writers: Arc<WriterRegistry>,
    outputs: Arc<Outputs>,
    counters: Arc<WriteCounters>,
    next_job: Arc<NextJobWriter>,
    turns: TurnQueue,
    sender: tokio::sync::Mutex<CommitSender>,
}

/// The units of a commit and their results.
#[derive(Debug)]
struct OpenCommit {
    units: Vec<TransactionUnit>,
    results: Vec<Option<UnitResult>>,
    /// Runs whose outputs are not deleted together with them.
    outputs_left: BTreeSet<RunId>,
    /// Deleted runs whose outputs still exist.
    undeleted: Vec<RunId>,
    has_created_folders: bool,
}

impl ZnodeCommitter {
    pub(crate) fn new(
        ensemble: Arc<Ensemble>,
        known: Arc<KnownZnodes>,
        writers: Arc<WriterRegistry>,
        outputs: Arc<Outputs>,
        counters: Arc<WriteCounters>,
        next_job: Arc<NextJobWriter>,
    ) -> Self {
        Self {
            ensemble,
            known,
            writers,
            outputs,
            counters,
            next_job,
            turns: TurnQueue::default(),
            sender: tokio::sync::Mutex::default(),
        }
    }

    /// The turn of a commit, after all that were requested before.
    pub(crate) fn take_turn(&self) -> CommitTurn {
        self.turns.take()
    }

    /// Commits units in their order, and returns a result for each.
    pub(crate) async fn commit(
        &self,
        mut turn: CommitTurn,
        by: HandleId,
        units: Vec<TransactionUnit>,
    ) -> Vec<UnitResult> {
        let mut commit = OpenCommit::new(units, &self.ensemble.limits(), self.ensemble.url().request_bytes_max());
        turn.begin().await;
        let mut sender = self.sender.lock().await;
        let outcome = self.run_rounds(by, &mut sender, &mut commit).await;
        drop((sender, turn));
        self.delete_outputs(std::mem::take(&mut commit.undeleted));
        let fault = outcome.err().unwrap_or_else(|| Fault::Unavailable(CONTENDED.to_owned()));
        let results: Vec<UnitResult> =
            commit.results.into_iter().map(|result| result.unwrap_or_else(|| Err(fault.clone().into()))).collect();
        let done = results.iter().filter(|result| result.is_ok()).count();
        if done > 0 {
            self.counters.count_commit(done);
        }
        self.counters.record_results(&results);
        results
    }

    /// Deletes outputs after the result of the commit was returned. If this fails, they belong to no run, and expiry deletes
    /// them.
    fn delete_outputs(&self, runs: Vec<RunId>) {
        if !runs.is_empty() {
            let outputs = Arc::clone(&self.outputs);
            drop(tokio::spawn(async move { outputs.drop_all(&runs).await }));
        }
    }

    async fn run_rounds(&self, by: HandleId, sender: &mut CommitSender, commit: &mut OpenCommit) -> Result<(), Fault> {
        let (mut is_fresh, mut rounds) = (false, 0);
        while rounds < ROUNDS_MAX {
            rounds += 1;
            let open = commit.open();
            if open.is_empty() {
                return Ok(());
            }
            let session = self.ensemble.session().await?;
            if is_fresh {
                self.known.forget(open.iter().flat_map(|(_, packed)| packed.keys()));
            }
            let seal = self.ensemble.seal().check(&session, is_fresh).await?;
            let view = self.view(&session, &open, &commit.outputs_left).await?;
            let mut parts = plan_commit(self.ensemble.paths(), &seal, &view, &open);
            let has_refusals = parts.iter().flat_map(|part| &part.results).any(|(_, result)| result.is_err());
            if has_refusals && !is_fresh {
                is_fresh = true;
                continue;
            }
            is_fresh = true;
            self.add_next_job(&mut parts, &commit.units);
            self.writers.expect_deletions(by, parts.iter().flat_map(|part| &part.deletions));
            let mut sent = sender.send(&self.ensemble, &session, &parts).await;
            self.next_job.apply(parts.iter().take(sent.done).flat_map(|part| part.changes(&commit.units)));
            let blocked = sent.blocked.take().filter(|_| sent.fault.is_none());
            let part: Vec<usize> = parts.get(sent.done).map(CommitPart::accepted_positions).unwrap_or_default();
            let fault = self.settle(commit, parts, sent);
            fault.map_or(Ok(()), Err)?;
            if let Some(blocked) = blocked
                && self.resolve_blocked(&session, commit, &view.outputs, &part, &blocked).await?
            {
                // Each unit can be refused only once.
                rounds = 0;
            }
        }
        Ok(())
    }

    /// Lets each transaction set `/nextjob` if it changes when jobs are next.
    fn add_next_job(&self, parts: &mut [CommitPart], units: &[TransactionUnit]) {
        let mut overlay = ScheduleOverlay::default();
        for part in parts.iter_mut().filter(|part| !part.writes.is_empty()) {
            let write = self.next_job.write_after(&mut overlay, part.changes(units));
            let bytes: usize = part.writes.iter().chain(&write).map(ZnodeWrite::bytes).sum();
            part.writes.extend(write.filter(|_| bytes <= self.ensemble.url().request_bytes_max()));
        }
    }

    /// Removes the cause of a part that would fail again: deleted folders are created, outputs are left for later, and
    /// otherwise the units that need the operation are refused. Returns whether units were refused.
    async fn resolve_blocked(
        &self,
        session: &ZooKeeperSession,
        commit: &mut OpenCommit,
        outputs: &OutputView,
        part: &[usize],
        blocked: &BlockedWrite,
    ) -> Result<bool, Fault> {
        if blocked.path() == self.next_job.path() {
            // Its task creates it again.
            self.next_job.set_active(false);
            return Ok(false);
        }
        if let Some(run) = outputs.run_of(blocked.path()) {
            commit.outputs_left.insert(run);
            return Ok(false);
        }
        if matches!(blocked, BlockedWrite::NoFolder { .. }) && !commit.has_created_folders {
            commit.has_created_folders = true;
            self.ensemble.create_folders(session).await?;
            return Ok(false);
        }
        let fault = blocked.to_fault(&self.ensemble.url().server_list());
        let paths = self.ensemble.paths();
        let is_blocked = |position: &&usize| commit.units[**position].has_path(paths, blocked.path());
        let refused: Vec<usize> = part.iter().filter(is_blocked).copied().collect();
        for position in &refused {
            commit.results[*position] = Some(Err(fault.clone().into()));
        }
        Ok(!refused.is_empty())
    }

    /// What is known about the units: what is not known yet is read.
    async fn view(
        &self,
        session: &ZooKeeperSession,
        open: &[(usize, &TransactionUnit)],
        outputs_left: &BTreeSet<RunId>,
    ) -> Result<CommitView, Fault> {
        let units = open.iter().map(|(_, packed)| *packed);
        let locks = LockView::load(&self.ensemble, session, units.clone()).await?;
        let outputs = OutputView::load(&self.ensemble, session, units, outputs_left).await?;
        let mut znodes: SeedlessMap<RecordKey, KnownZnode> = SeedlessMap::default();
        let mut missing: Vec<RecordKey> = Vec::new();
        for key in open.iter().flat_map(|(_, packed)| packed.keys()) {
            if znodes.contains_key(key) {
                continue;
            }
            let known = self.known.get(key);
            znodes.insert(key.clone(), known.unwrap_or(KnownZnode::ABSENT));
            if known.is_none() {
                missing.push(key.clone());
            }
        }
        for keys in missing.chunks(READS_MAX) {
            let paths: Vec<String> = keys.iter().filter_map(|key| self.ensemble.paths().record(key)).collect();
            let found = session.read(&paths, true).await?;
            let read = keys.iter().zip(found).map(|(key, znode)| {
                let znode = znode.map_or(KnownZnode::ABSENT, |znode| KnownZnode {
                    data_version: Some(znode.stat.version),
                    version: record_text::version(key, &znode.data),
                });
                (key.clone(), znode)
            });
            let read: Vec<(RecordKey, KnownZnode)> = read.collect();
            znodes.extend(read.iter().cloned());
            self.known.extend(read);
        }
        let bytes_max = self.ensemble.url().request_bytes_max();
        Ok(CommitView { znodes, locks, outputs, bytes_max })
    }

    /// Keeps the results of the parts that took effect. Returns the fault that ends the commit.
    fn settle(&self, commit: &mut OpenCommit, parts: Vec<CommitPart>, sent: SentParts) -> Option<Fault> {
        for (index, part) in parts.into_iter().enumerate() {
            if index >= sent.done {
                // What these parts assumed may be out of date.
                self.known.forget(part.znodes.iter().map(|(key, _)| key));
                continue;
            }
            for (position, result) in part.results {
                commit.results[position] = Some(result);
            }
            self.known.extend(part.znodes);
            commit.undeleted.extend(part.outputs_left);
        }
        sent.fault
    }
}

impl OpenCommit {
    /// Refuses units that are too large at once.
    fn new(units: Vec<TransactionUnit>, limits: &StoreLimits, bytes_max: usize) -> Self {
        let check = |packed: &TransactionUnit| {
            packed.check_size(limits, bytes_max).err().map(|fault| Err(UnitRefusal::Fault(fault)))
        };
        let results: Vec<Option<Result<UnitReceipt, UnitRefusal>>> = units.iter().map(check).collect();
        Self { units, results, outputs_left: BTreeSet::new(), undeleted: Vec::new(), has_created_folders: false }
    }

    /// The units without a result, with their positions.
    fn open(&self) -> Vec<(usize, &TransactionUnit)> {
        let results = self.units.iter().enumerate().zip(&self.results);
        results.filter(|(_, result)| result.is_none()).map(|(unit, _)| unit).collect()
    }
}
