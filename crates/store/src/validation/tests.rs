//! Compares the validator with a model that executes each unit on a copy of everything and keeps the copy if nothing
//! went wrong, over random batches on few records and locks, so that units often meet.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::record::{JobState, LockName, Pool, PoolName, Record, RecordKey, RecordVersion, TriggerSet};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::{Instant, Span};

use super::*;
use crate::seeded_random::SeededRandom;
use crate::{Fault, LockHold};

const BATCHES: u64 = 20_000;
const UNITS_MAX: usize = 12;

/// A lock of the model: its fence, and its holder with the end.
type ModelLock = (u64, Option<(RunId, Option<Instant>)>);

/// The model: what is stored.
#[derive(Debug, Clone, PartialEq, Default)]
struct Model {
    records: BTreeMap<RecordKey, RecordVersion>,
    locks: BTreeMap<LockName, ModelLock>,
}

impl Model {
    /// Executes a unit step by step. After an error the model is useless.
    fn execute(&mut self, unit: &Unit, now: Instant) -> Result<UnitReceipt, UnitRefusal> {
        for change in &unit.changes {
            let compares = unit.compare.iter().filter(|(key, _)| *key == change.key()).count();
            let changes = unit.changes.iter().filter(|other| other.key() == change.key()).count();
            if compares == 0 || changes > 1 {
                return Err(UnitRefusal::Fault(Fault::Permanent(String::new())));
            }
        }
        for (key, expected) in &unit.compare {
            if self.records.get(key) != expected.as_ref() {
                return Err(UnitRefusal::Conflict(key.clone()));
            }
        }
        for change in &unit.changes {
            match change {
                RecordChange::Put(record) => drop(self.records.insert(record.key(), unit.version)),
                RecordChange::Delete(key) => drop(self.records.remove(key)),
            }
        }
        for free in &unit.free {
            if let Some((_, hold)) = self.locks.get_mut(&free.lock)
                && hold.is_some_and(|(holder, _)| holder == free.holder)
            {
                *hold = None;
            }
        }
        let mut receipt = UnitReceipt::default();
        for take in &unit.take {
            let (fence, hold) = self.locks.get(&take.lock).copied().unwrap_or((0, None));
            let valid = hold.filter(|(_, end)| end.is_none_or(|end| end > now));
            let fence = match valid {
                Some((holder, _)) if holder != take.holder => {
                    return Err(UnitRefusal::Held { lock: take.lock.clone(), holder });
                }
                Some(_) => fence,
                None => (fence + 1).max(now.millis().cast_unsigned()),
            };
            let end = take.ttl.map(|ttl| now.plus(ttl));
            self.locks.insert(take.lock.clone(), (fence, Some((take.holder, end))));
            receipt.fences.push((take.lock.clone(), fence));
        }
        Ok(receipt)
    }

    /// Applies a net effect, after checking that everything is as the effect expects.
    fn apply(&mut self, effect: &NetEffect) {
        for (key, record) in &effect.records {
            assert_eq!(self.records.get(key), record.expected.as_ref(), "{key}");
            match &record.change {
                Some(NetChange { version, change: RecordChange::Put(put), .. }) => {
                    assert_eq!(put.key(), *key);
                    self.records.insert(key.clone(), *version);
                }
                Some(NetChange { change: RecordChange::Delete(_), .. }) => drop(self.records.remove(key)),
                None => {}
            }
        }
        for (name, lock) in &effect.locks {
            assert_eq!(self.lock(name), lock.before.map(without_version), "{name}");
            match lock.after.map(without_version) {
                Some(after) => drop(self.locks.insert(name.clone(), after)),
                None => drop(self.locks.remove(name)),
            }
        }
    }

    fn lock(&self, name: &LockName) -> Option<ModelLock> {
        self.locks.get(name).copied()
    }
}

fn without_version(entry: LockEntry) -> ModelLock {
    (entry.fence, entry.hold.map(|hold| (hold.holder, hold.until)))
}

impl VersionSource for Model {
    fn version(&self, key: &RecordKey) -> Option<RecordVersion> {
        self.records.get(key).copied()
    }

    fn lock(&self, name: &LockName) -> Option<LockEntry> {
        let (fence, hold) = self.locks.get(name).copied()?;
        let version = RecordVersion::new(1, 1);
        let hold = hold.map(|(holder, until)| LockHold { holder, version, ttl: None, until });
        Some(LockEntry { fence, hold })
    }
}

/// Draws stored contents and batches.
struct BatchGenerator {
    random: SeededRandom,
    units: u64,
}

/// The time of all batches.
fn now() -> Instant {
    Instant::from_secs(1_800_000_000)
}

impl BatchGenerator {
    fn record(&mut self) -> Record {
        let job = JobId::parse(["a", "b"][self.random.below(2)]).expect("an id");
        match self.random.below(3) {
            0 => Record::JobState(Arc::new(JobState::new(job))),
            1 => Record::Triggers(Arc::new(TriggerSet::new(job))),
            _ => {
                let name = PoolName::parse(job.as_str()).expect("a name");
                Record::Pool(Arc::new(Pool { name, active: Vec::new() }))
            }
        }
    }

    fn lock(&mut self) -> LockName {
        LockName::parse(["l", "m", "n"][self.random.below(3)]).expect("a name")
    }

    fn holder(&mut self) -> RunId {
        RunId::from_key(now(), ["r", "s", "t"][self.random.below(3)])
    }

    fn ttl(&mut self) -> Option<Span> {
        [None, Some(Span::ZERO), Some(Span::from_secs(5))][self.random.below(3)]
    }

    fn next_version(&mut self) -> RecordVersion {
        self.units += 1;
        RecordVersion::new(1, self.units)
    }

    fn stored(&mut self) -> Model {
        let mut model = Model::default();
        for _ in 0..self.random.below(6) {
            let (key, version) = (self.record().key(), self.next_version());
            model.records.insert(key, version);
        }
        for _ in 0..self.random.below(4) {
            // Some fences are ahead of the time, and some holds have expired.
            let fence = now().millis().cast_unsigned() - 1 + self.random.below(3) as u64;
            let ends = [None, Some(now()), Some(now().minus(Span::from_secs(1))), Some(now().plus(Span::from_secs(1)))];
            let hold = (self.random.below(3) > 0).then(|| (self.holder(), ends[self.random.below(4)]));
            model.locks.insert(self.lock(), (fence, hold));
        }
        model
    }

    /// A unit that usually expects what the units before it leave behind if all of them succeed.
    fn unit(&mut self, assumed: &Model) -> Unit {
        let version = self.next_version();
        let mut unit = Unit { version, compare: Vec::new(), changes: Vec::new(), take: Vec::new(), free: Vec::new() };
        for _ in 0..self.random.below(4) {
            let record = self.record();
            let key = record.key();
            if unit.compare.iter().any(|(compared, _)| *compared == key) {
                continue;
            }
            let expected = match self.random.below(20) {
                0 => None,
                1 => Some(self.next_version()),
                _ => assumed.records.get(&key).copied(),
            };
            unit.compare.push((key.clone(), expected));
            match self.random.below(5) {
                0 => {}
                1 => unit.changes.push(RecordChange::Delete(key)),
                _ => unit.changes.push(RecordChange::Put(record)),
            }
        }
        if self.random.below(3) == 0 {
            let (lock, holder, ttl) = (self.lock(), self.holder(), self.ttl());
            unit.take.push(LockTake { lock, holder, ttl });
        }
        if self.random.below(3) == 0 {
            // Often a hand-over, or the release of a lock by its holder.
            let lock = unit.take.first().map_or_else(|| self.lock(), |take| take.lock.clone());
            let holder = assumed.lock(&lock).and_then(|(_, hold)| hold).map(|(holder, _)| holder);
            let holder = holder.filter(|_| self.random.below(4) > 0).unwrap_or_else(|| self.holder());
            unit.free.push(LockRelease { lock, holder });
        }
        match self.random.below(40) {
            0 => drop(unit.compare.pop()),
            1 => unit.changes.extend(unit.changes.first().cloned()),
            2 => unit.changes.reverse(),
            _ => {}
        }
        unit
    }
}

fn is_same(found: &Result<UnitReceipt, UnitRefusal>, expected: &Result<UnitReceipt, UnitRefusal>) -> bool {
    match (found, expected) {
        // The model has no message.
        (Err(UnitRefusal::Fault(found)), Err(UnitRefusal::Fault(_))) => matches!(found, Fault::Permanent(_)),
        (found, expected) => found == expected,
    }
}

#[test]
fn random_batches_are_decided_like_units_one_by_one() {
    let mut outcomes: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..BATCHES {
        let mut generator = BatchGenerator { random: SeededRandom::new(seed), units: 0 };
        let stored = generator.stored();
        let (mut model, mut assumed) = (stored.clone(), stored.clone());
        let mut validator = BatchValidator::new(now());
        let mut applied = stored.clone();
        for number in 0..generator.random.below(UNITS_MAX) {
            let unit = generator.unit(&assumed);
            let _ = assumed.execute(&unit, now());
            let mut copy = model.clone();
            let expected = copy.execute(&unit, now());
            if expected.is_ok() {
                model = copy;
            }
            let found = validator.validate(&unit, &stored);
            assert!(
                is_same(&found, &expected),
                "seed {seed}, unit {number}: {found:?} instead of {expected:?}: {unit:?}"
            );
            *outcomes.entry(outcome(&expected)).or_default() += 1;
            // A store may write a batch in parts.
            if generator.random.below(8) == 0 {
                applied.apply(&validator.take_effect());
                assert_eq!(applied, model, "seed {seed}, up to unit {number}");
            }
        }
        applied.apply(&validator.take_effect());
        assert_eq!(applied, model, "seed {seed}");
        assert!(validator.take_effect().is_empty());
    }
    assert!(outcomes.len() == 4 && outcomes.values().all(|count| *count > 1_000), "few of some kind: {outcomes:?}");
}

fn outcome(result: &Result<UnitReceipt, UnitRefusal>) -> &'static str {
    match result {
        Ok(_) => "done",
        Err(UnitRefusal::Conflict(_)) => "conflict",
        Err(UnitRefusal::Held { .. }) => "held",
        Err(UnitRefusal::Fault(_)) => "invalid",
    }
}

/// A record that is deleted and created again in one batch is written once, and what belongs to it is deleted.
#[test]
fn net_effect_has_the_first_expected_version_and_the_last_change() {
    let record = Record::JobState(Arc::new(JobState::new(JobId::parse("a").expect("an id"))));
    let (key, [first, second, third]) = (record.key(), [1, 2, 3].map(|unit| RecordVersion::new(1, unit)));
    let stored = Model { records: [(key.clone(), first)].into_iter().collect(), ..Model::default() };
    let unit = |version, expected, change| Unit {
        version,
        compare: vec![(key.clone(), expected)],
        changes: vec![change],
        take: Vec::new(),
        free: Vec::new(),
    };
    let mut validator = BatchValidator::new(now());
    let delete = unit(second, Some(first), RecordChange::Delete(key.clone()));
    let create = unit(third, None, RecordChange::Put(record.clone()));
    for unit in [delete, create] {
        assert_eq!(validator.validate(&unit, &stored), Ok(UnitReceipt::default()));
    }
    let effect = validator.take_effect();
    let change = NetChange { version: third, change: RecordChange::Put(record), is_deletion: true };
    let expected = NetRecord { expected: Some(first), change: Some(change) };
    assert_eq!(effect.records.into_iter().collect::<Vec<_>>(), [(key, expected)]);
}
