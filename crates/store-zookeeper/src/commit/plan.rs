//! Plans the transactions of a commit: decides each unit by what is known, and puts consecutive units together. Each
//! transaction checks every znode that its units compare, and writes each changed one once.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LockName, RecordKey, RecordVersion};
use cronhold_store::{
    BatchValidator, LockEntry, NetChange, NetEffect, SeedlessMap, UnitReceipt, UnitRefusal, VersionSource,
};

use super::lock_view::LockView;
use super::output_view::OutputView;
use super::transaction_unit::TransactionUnit;
use crate::known_znodes::KnownZnode;
use crate::lock_text;
use crate::paths::ZnodePaths;
use crate::record_text::is_reusable;
use crate::wire::ZnodeWrite;

/// Units of one transaction. More of them gain little, and a refusal would concern more.
const UNITS_MAX: usize = 64;

/// Bytes of one transaction of several units, also if the servers accept larger ones.
const BYTES_MAX: usize = 700_000;

/// Why a unit was refused, or what it got.
pub(super) type UnitResult = Result<UnitReceipt, UnitRefusal>;

/// One transaction, and what is true if it takes effect.
#[derive(Debug, Default)]
pub(super) struct CommitPart {
    pub(super) writes: Vec<ZnodeWrite>,
    /// Results of units by their position in the commit. They are right if this part and all before it take effect.
    pub(super) results: Vec<(usize, UnitResult)>,
    /// The znodes of the records afterwards.
    pub(super) znodes: Vec<(RecordKey, KnownZnode)>,
    /// Paths of records that are deleted.
    pub(super) deletions: Vec<String>,
    /// Runs that are deleted and whose outputs are not.
    pub(super) outputs_left: Vec<RunId>,
    /// How many units take effect.
    pub(super) accepted: usize,
}

impl CommitPart {
    /// The positions of the units that take effect with the part.
    pub(super) fn accepted_positions(&self) -> Vec<usize> {
        self.results.iter().filter(|(_, result)| result.is_ok()).map(|(position, _)| *position).collect()
    }

    /// The changes of the units that take effect with the part.
    pub(super) fn changes<'u>(&self, units: &'u [TransactionUnit]) -> impl Iterator<Item = &'u [RecordChange]> {
        let accepted = self.results.iter().filter(|(_, result)| result.is_ok());
        accepted.map(|(position, _)| units[*position].unit.changes.as_slice())
    }
}

/// What units are decided on.
#[derive(Debug)]
pub(super) struct CommitView {
    /// The znode of every record that the units compare.
    pub(super) znodes: SeedlessMap<RecordKey, KnownZnode>,
    pub(super) locks: LockView,
    pub(super) outputs: OutputView,
    /// Bytes of the largest transaction.
    pub(super) bytes_max: usize,
}

impl VersionSource for CommitView {
    fn version(&self, key: &RecordKey) -> Option<RecordVersion> {
        self.znodes.get(key).and_then(|znode| znode.version)
    }

    fn lock(&self, name: &LockName) -> Option<LockEntry> {
        self.locks.entry(name)
    }
}

/// Builds the parts of a commit.
#[derive(Debug)]
struct CommitPlanner<'a> {
    paths: &'a ZnodePaths,
    /// Fails if the store is sealed.
    seal: &'a ZnodeWrite,
    view: &'a CommitView,
    /// Data versions of znodes after the parts that are complete.
    data_versions: BTreeMap<String, Option<i32>>,
    parts: Vec<CommitPart>,
}

/// Decides units in their order, and returns the transactions that write those that are accepted.
pub(super) fn plan_commit(
    paths: &ZnodePaths,
    seal: &ZnodeWrite,
    view: &CommitView,
    units: &[(usize, &TransactionUnit)],
) -> Vec<CommitPart> {
    let mut planner = CommitPlanner { paths, seal, view, data_versions: BTreeMap::new(), parts: Vec::new() };
    let mut validator = BatchValidator::new(view.locks.now);
    let bytes_max = view.bytes_max.min(BYTES_MAX);
    let (mut part, mut members, mut bytes) = (CommitPart::default(), Vec::new(), 0);
    for (position, packed) in units {
        let unit_bytes = packed.bytes + view.outputs.bytes(packed);
        let is_full = members.len() >= UNITS_MAX || (bytes + unit_bytes > bytes_max && !members.is_empty());
        if is_full {
            planner.complete(std::mem::take(&mut part), &validator.take_effect(), &members);
            (members, bytes) = (Vec::new(), 0);
        }
        let result = match view.locks.check(packed) {
            Ok(()) => validator.validate(&packed.unit, view),
            Err(fault) => Err(fault.into()),
        };
        if result.is_ok() {
            bytes += unit_bytes;
            members.push(*packed);
        }
        part.results.push((*position, result));
    }
    planner.complete(part, &validator.take_effect(), &members);
    planner.parts
}

impl CommitPlanner<'_> {
    /// Adds the operations of a part, whose accepted units are `members`.
    fn complete(&mut self, mut part: CommitPart, effect: &NetEffect, members: &[&TransactionUnit]) {
        part.accepted = members.len();
        for (key, record) in &effect.records {
            if let Some(path) = self.paths.record(key) {
                self.write_record(&mut part, key, path, record.change.as_ref(), members);
            }
        }
        for (name, lock) in &effect.locks {
            self.write_lock(&mut part, name, lock.before == lock.after, lock.after.as_ref());
        }
        if !part.writes.is_empty() {
            part.writes.push(self.seal.clone());
        }
        self.parts.push(part);
    }

    fn write_record(
        &mut self,
        part: &mut CommitPart,
        key: &RecordKey,
        path: String,
        change: Option<&NetChange>,
        members: &[&TransactionUnit],
    ) {
        let known = || self.view.znodes.get(key).and_then(|znode| znode.data_version);
        let data_version = self.data_versions.get(&path).copied().unwrap_or_else(known);
        let put = change.filter(|change| matches!(change.change, RecordChange::Put(_)));
        let writer = put.and_then(|put| members.iter().rev().find(|packed| packed.unit.version == put.version));
        let data = writer.map_or(&[][..], |packed| packed.data_of(key)).to_vec();
        let is_deletion = change.is_some() && put.is_none();
        let create = |path: &String, data| ZnodeWrite::Create { path: path.clone(), data, is_ephemeral: false };
        let after = match data_version {
            Some(version) if change.is_none() => {
                part.writes.push(ZnodeWrite::Check { path: path.clone(), version });
                Some(version)
            }
            Some(version) if is_deletion && !is_reusable(key.kind()) => {
                part.writes.push(ZnodeWrite::Delete { path: path.clone(), version: Some(version) });
                None
            }
            Some(version) => {
                part.writes.push(ZnodeWrite::Set { path: path.clone(), data, version: Some(version) });
                Some(version.wrapping_add(1))
            }
            None if put.is_some() => {
                part.writes.push(create(&path, data));
                Some(0)
            }
            // Nothing is written, and the transaction fails if there is a record.
            None => {
                part.writes.push(create(&path, Vec::new()));
                part.writes.push(ZnodeWrite::Delete { path: path.clone(), version: Some(0) });
                None
            }
        };
        if is_deletion {
            part.deletions.push(path.clone());
        }
        if let (true, RecordKey::Run(run)) = (change.is_some_and(|change| change.is_deletion), key) {
            part.writes.extend(self.view.outputs.deletions(*run));
            part.outputs_left.extend(Some(*run).filter(|run| self.view.outputs.is_left(*run)));
        }
        if let Some(change) = change {
            let version = put.is_some().then_some(change.version);
            part.znodes.push((key.clone(), KnownZnode { data_version: after, version }));
        }
        self.data_versions.insert(path, after);
    }

    fn write_lock(&mut self, part: &mut CommitPart, name: &LockName, is_same: bool, after: Option<&LockEntry>) {
        let path = self.paths.lock(name);
        let known = || self.view.locks.data_version(name);
        let data_version = self.data_versions.get(&path).copied().unwrap_or_else(known);
        let next = match (data_version, after) {
            (Some(version), _) if is_same => {
                part.writes.push(ZnodeWrite::Check { path: path.clone(), version });
                Some(version)
            }
            (Some(version), Some(entry)) => {
                let data = lock_text::encode(entry);
                part.writes.push(ZnodeWrite::Set { path: path.clone(), data, version: Some(version) });
                Some(version.wrapping_add(1))
            }
            (None, Some(entry)) => {
                let data = lock_text::encode(entry);
                part.writes.push(ZnodeWrite::Create { path: path.clone(), data, is_ephemeral: false });
                Some(0)
            }
            // A release of a lock without a znode.
            (version, None) => version,
        };
        self.data_versions.insert(path, next);
    }
}
