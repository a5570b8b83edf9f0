//! Limits of a store. Nodes respect them, so that no request fails because of them.

use std::fmt;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::Record;

use crate::{Fault, Unit};

/// How much a store keeps. `None` means that the store sets no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreLimits {
    /// Bytes of a record, as the store encodes it. Job definitions above it are rejected.
    pub record: Option<u64>,
    /// Bytes of all records that one unit writes.
    pub unit: Option<u64>,
    /// Bytes of the output of a run. The beginning and the end of longer outputs are stored.
    pub output: Option<u64>,
    /// Number of outputs. Beyond it, the oldest outputs of finished runs are deleted.
    pub outputs: Option<u64>,
    /// Finished runs of a job in each state. Jobs that retain more keep this many.
    pub kept: Option<u32>,
}

impl StoreLimits {
    /// Fails if a record of a unit, or the unit as a whole, is too large. `size` returns the encoded size of a record.
    pub fn check_unit(&self, unit: &Unit, size: impl Fn(&Record) -> u64) -> Result<(), Fault> {
        if self.record.is_none() && self.unit.is_none() {
            return Ok(());
        }
        let mut total: u64 = 0;
        for change in &unit.changes {
            let RecordChange::Put(record) = change else { continue };
            let bytes = size(record);
            if let Some(most) = self.record.filter(|most| bytes > *most) {
                let key = record.key();
                return Err(Fault::Permanent(format!("{key} has {bytes} bytes; this store keeps at most {most}")));
            }
            total = total.saturating_add(bytes);
        }
        match self.unit.filter(|most| total > *most) {
            Some(most) => Err(Fault::Permanent(format!(
                "the records of a unit have {total} bytes; this store writes at most {most} together"
            ))),
            None => Ok(()),
        }
    }
}

/// The limits that are set, for the log, such as `record: 900000 bytes, outputs: 1000 in all`; empty if none is set.
impl fmt::Display for StoreLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, unit, output, outputs, kept } = *self;
        let all = [
            ("record", record, "bytes"),
            ("unit", unit, "bytes"),
            ("output of a run", output, "bytes"),
            ("outputs", outputs, "in all"),
            ("finished runs", kept.map(u64::from), "per job and state"),
        ];
        let set = all.into_iter().filter_map(|(name, limit, unit)| Some((name, limit?, unit)));
        for (index, (name, limit, unit)) in set.enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{name}: {limit} {unit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_are_set_are_displayed() {
        assert_eq!(StoreLimits::default().to_string(), "");
        let limits = StoreLimits { output: Some(65_536), kept: Some(100), ..StoreLimits::default() };
        assert_eq!(limits.to_string(), "output of a run: 65536 bytes, finished runs: 100 per job and state");
    }
}
