//! Units that were sent and not confirmed, because the reply was lost. If a read shows that such a unit took effect, it
//! belongs into the journal like any other.

use std::collections::{BTreeMap, VecDeque};

use super::journal::{LockWrite, RecordWrite};

/// Units that are kept at most. A writer looks its units up as soon as the server replies again.
const UNITS_MAX: usize = 20_000;

/// What a unit writes if it took effect.
#[derive(Debug)]
pub(super) struct UnconfirmedUnit {
    pub(super) writes: Vec<RecordWrite>,
    pub(super) locks: Vec<LockWrite>,
}

/// Unconfirmed units by their version.
#[derive(Debug, Default)]
pub(super) struct UnconfirmedUnits {
    units: BTreeMap<String, UnconfirmedUnit>,
    /// Versions, the oldest first. May contain units that were confirmed.
    ages: VecDeque<String>,
}

impl UnconfirmedUnits {
    /// The reply to this unit was lost.
    pub(super) fn insert(&mut self, version: String, unit: UnconfirmedUnit) {
        self.units.insert(version.clone(), unit);
        self.ages.push_back(version);
        while self.ages.len() > UNITS_MAX
            && let Some(oldest) = self.ages.pop_front()
        {
            self.units.remove(&oldest);
        }
    }

    /// Removes the unit with this version, because its outcome is known.
    pub(super) fn remove(&mut self, version: &str) -> Option<UnconfirmedUnit> {
        let unit = self.units.remove(version)?;
        if self.units.is_empty() {
            self.ages.clear();
        }
        Some(unit)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unconfirmed_units_are_bounded_and_removed_once() {
        let unit = || UnconfirmedUnit { writes: Vec::new(), locks: Vec::new() };
        let mut units = UnconfirmedUnits::default();
        for number in 0..=UNITS_MAX {
            units.insert(number.to_string(), unit());
        }
        assert!(units.remove("0").is_none());
        assert!(units.remove("1").is_some());
        assert!(units.remove("1").is_none());
        assert!(!units.is_empty());
    }
}
