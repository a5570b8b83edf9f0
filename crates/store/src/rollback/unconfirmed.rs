//! Units that were sent and not confirmed, because the reply was lost. If a read shows that such a unit took effect, it
//! belongs into the journal like any other.

use std::collections::{BTreeMap, VecDeque};

use cronhold_core::record::RecordVersion;

use super::UnitWrites;

/// Units that are kept at most. A writer looks its units up as soon as the store replies again.
const UNITS_MAX: usize = 20_000;

/// Unconfirmed units by their version.
#[derive(Debug, Default)]
pub(super) struct UnconfirmedUnits {
    units: BTreeMap<RecordVersion, UnitWrites>,
    /// Versions, the oldest first. May contain units that were confirmed.
    ages: VecDeque<RecordVersion>,
}

impl UnconfirmedUnits {
    /// The reply to this unit was lost.
    pub(super) fn insert(&mut self, unit: UnitWrites) {
        self.ages.push_back(unit.version);
        self.units.insert(unit.version, unit);
        while self.ages.len() > UNITS_MAX
            && let Some(oldest) = self.ages.pop_front()
        {
            self.units.remove(&oldest);
        }
    }

    /// Removes the unit with this version, because its outcome is known.
    pub(super) fn remove(&mut self, version: RecordVersion) -> Option<UnitWrites> {
        let unit = self.units.remove(&version)?;
        if self.units.is_empty() {
            self.ages.clear();
        }
        Some(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unconfirmed_units_are_bounded_and_removed_once() {
        let version = |number| RecordVersion::new(1, number);
        let mut units = UnconfirmedUnits::default();
        for number in 0..=UNITS_MAX as u64 {
            let version = version(number);
            units.insert(UnitWrites { version, changes: Vec::new(), take: Vec::new(), free: Vec::new() });
        }
        assert!(units.remove(version(0)).is_none());
        assert!(units.remove(version(1)).is_some());
        assert!(units.remove(version(1)).is_none());
    }
}
