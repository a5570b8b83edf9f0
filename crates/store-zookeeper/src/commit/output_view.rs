//! The outputs of runs that the units of a commit delete. They are deleted in the transaction that deletes the run, unless
//! they are too large for it.

use std::collections::BTreeSet;

use cronhold_core::RunId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::RecordKey;
use cronhold_store::{Fault, SeedlessMap};

use super::transaction_unit::TransactionUnit;
use crate::ensemble::Ensemble;
use crate::wire::{WRITE_OPERATION_BYTES, ZnodeWrite, ZooKeeperSession};

/// Bytes of the operations that delete the outputs of one unit, at most.
const UNIT_BYTES_MAX: usize = 200_000;

/// The outputs that are deleted together with their runs.
#[derive(Debug, Default)]
pub(super) struct OutputView {
    /// The znodes of each output, children before their parent.
    paths: SeedlessMap<RunId, Vec<String>>,
    /// Runs whose outputs are deleted after the commit.
    left: BTreeSet<RunId>,
}

impl OutputView {
    /// Finds the outputs of the runs that these units delete. The outputs in `left` are deleted after the commit.
    pub(super) async fn load(
        ensemble: &Ensemble,
        session: &ZooKeeperSession,
        units: impl Iterator<Item = &TransactionUnit> + Clone,
        left: &BTreeSet<RunId>,
    ) -> Result<Self, Fault> {
        let mut runs: Vec<RunId> = units.clone().flat_map(deleted_runs).filter(|run| !left.contains(run)).collect();
        runs.sort_unstable();
        runs.dedup();
        let mut view = Self { paths: SeedlessMap::default(), left: left.clone() };
        if runs.is_empty() {
            return Ok(view);
        }
        let outputs: Vec<String> = runs.iter().map(|run| ensemble.paths().output(*run)).collect();
        session.sync().await?;
        let found = session.find_children(&outputs).await?;
        for ((run, output), pieces) in runs.into_iter().zip(outputs).zip(found) {
            let Some(pieces) = pieces else { continue };
            let mut paths: Vec<String> = pieces.into_iter().map(|piece| format!("{output}/{piece}")).collect();
            paths.push(output);
            view.paths.insert(run, paths);
        }
        for packed in units.filter(|packed| view.bytes(packed) > UNIT_BYTES_MAX).collect::<Vec<_>>() {
            for run in deleted_runs(packed) {
                view.paths.remove(&run);
                view.left.insert(run);
            }
        }
        Ok(view)
    }

    /// Bytes of the operations that delete the outputs of a unit.
    pub(super) fn bytes(&self, packed: &TransactionUnit) -> usize {
        if self.paths.is_empty() {
            return 0;
        }
        let paths = deleted_runs(packed).filter_map(|run| self.paths.get(&run)).flatten();
        paths.map(|path| path.len() + WRITE_OPERATION_BYTES).sum()
    }

    /// The operations that delete the output of a run.
    pub(super) fn deletions(&self, run: RunId) -> impl Iterator<Item = ZnodeWrite> {
        let paths = self.paths.get(&run).into_iter().flatten();
        paths.map(|path| ZnodeWrite::Delete { path: path.clone(), version: None })
    }

    /// Whether the output of a run is deleted after the commit.
    pub(super) fn is_left(&self, run: RunId) -> bool {
        self.left.contains(&run)
    }

    /// The run whose output has this znode.
    pub(super) fn run_of(&self, path: &str) -> Option<RunId> {
        let mut outputs = self.paths.iter();
        outputs.find(|(_, paths)| paths.iter().any(|other| other == path)).map(|(run, _)| *run)
    }
}

fn deleted_runs(packed: &TransactionUnit) -> impl Iterator<Item = RunId> {
    packed.unit.changes.iter().filter_map(|change| match change {
        RecordChange::Delete(RecordKey::Run(run)) => Some(*run),
        _ => None,
    })
}
