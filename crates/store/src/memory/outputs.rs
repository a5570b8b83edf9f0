//! Outputs of runs.

use std::collections::BTreeMap;
use std::ops::Bound;

use cronhold_core::RunId;

use crate::{Chunk, Fault, OutputSizes};

/// The outputs of runs that have written something.
#[derive(Debug, Clone, Default)]
pub(super) struct MemoryOutputs {
    outputs: BTreeMap<RunId, Vec<u8>>,
    /// The size of all of them.
    total: u64,
}

impl MemoryOutputs {
    /// Appends the part of `bytes` that is not stored yet; `from` is the position of the first byte.
    /// The output may have at most `most` bytes.
    pub(super) fn append(&mut self, run: RunId, from: u64, bytes: &[u8], most: u64) -> Result<u64, Fault> {
        let length = self.outputs.get(&run).map_or(0, Vec::len);
        let known = usize::try_from(from).ok().and_then(|from| length.checked_sub(from));
        let Some(known) = known else {
            let message = format!("cannot append to the output of run {run} at byte {from}: it has {length} bytes");
            return Err(Fault::Permanent(message));
        };
        let new = bytes.get(known..).unwrap_or_default();
        if (length + new.len()) as u64 > most {
            let message = format!("the output of run {run} would exceed {most} bytes, which this store keeps at most");
            return Err(Fault::Permanent(message));
        }
        if !new.is_empty() {
            self.total += new.len() as u64;
            self.outputs.entry(run).or_default().extend_from_slice(new);
        }
        Ok((length + new.len()) as u64)
    }

    /// At most `most` bytes from a position.
    pub(super) fn read(&self, run: RunId, from: u64, most: usize) -> Chunk {
        let output = self.outputs.get(&run).map_or(&[][..], Vec::as_slice);
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(output.len());
        let until = from.saturating_add(most).min(output.len());
        Chunk { bytes: output[from..until].to_vec(), length: output.len() as u64 }
    }

    /// Runs that have an output, ordered by id, after this one.
    pub(super) fn list(&self, after: Option<RunId>, limit: usize) -> Vec<RunId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.outputs.range((from, Bound::Unbounded)).map(|(run, _)| *run).take(limit).collect()
    }

    /// The size of all outputs, and of those of these runs.
    pub(super) fn sizes(&self, runs: &[RunId]) -> OutputSizes {
        let of_runs = runs.iter().map(|run| self.outputs.get(run).map_or(0, Vec::len) as u64).collect();
        OutputSizes { total: self.total, of_runs }
    }

    /// Deletes the output of a run.
    pub(super) fn remove(&mut self, run: RunId) {
        self.total -= self.outputs.remove(&run).map_or(0, |output| output.len() as u64);
    }
}
