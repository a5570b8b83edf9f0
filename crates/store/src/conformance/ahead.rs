//! Cases about commits that are prepared before they are requested: nothing of them takes effect early, or at all if they
//! are dropped.

use std::sync::Arc;

use cronhold_core::record::{Record, RecordKey};

use super::samples::{job_state, lock_name, run_id};
use super::test_writer::{TestUnit, TestWriter};
use super::{Subject, block_on};
use crate::{AheadCommit, UnitReceipt, UnitRefusal};

/// Units of a piece that is large enough to be executed for a while.
const MANY: u64 = 300;

fn push(ahead: &mut dyn AheadCommit, drafts: impl IntoIterator<Item = TestUnit>) {
    ahead.push(drafts.into_iter().map(TestUnit::into_unit).collect());
}

fn name(number: u64) -> String {
    format!("job-{number}")
}

/// Prepared units are not visible before their commit, and all of them are afterwards. Later pieces build on earlier ones.
pub fn prepared_units_take_effect_with_their_commit(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let reader = TestWriter::of(subject);
    let (lock, holder) = (lock_name("l"), run_id(0, 1));
    let keys: Vec<RecordKey> = (0..MANY).map(|number| job_state(&name(number), 0).key()).collect();
    let mut ahead = Arc::clone(&writer.store).begin_ahead();
    let first: Vec<TestUnit> = (0..MANY).map(|number| writer.unit().put(job_state(&name(number), 1), None)).collect();
    let second = first.iter().zip(0..).map(|(first, number)| {
        let seen = Some(first.version());
        writer.unit().put(job_state(&name(number), 2), seen)
    });
    let mut second: Vec<TestUnit> = second.collect();
    second.push(writer.unit().take(&lock, holder, None));
    push(&mut *ahead, first);
    push(&mut *ahead, second);
    assert!(reader.load_all(&keys).into_iter().all(|stored| stored.is_none()), "nothing is visible early");
    assert_eq!(reader.holder(&lock), None);
    let results = block_on(ahead.commit());
    assert_eq!(results.len() as u64, 2 * MANY + 1);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let stored = reader.load_all(&keys).into_iter().map(|stored| stored.map(|stored| stored.record));
    assert!(stored.eq((0..MANY).map(|number| Some(job_state(&name(number), 2)))));
    assert_eq!(reader.holder(&lock), Some(holder));
}

/// What is dropped has no effect, whether its commit was prepared or not, and others can write its records.
pub fn dropped_units_have_no_effect(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let key = |number| job_state(&name(number), 0).key();
    for has_future in [false, true] {
        let mut ahead = Arc::clone(&writer.store).begin_ahead();
        push(&mut *ahead, (0..MANY).map(|number| writer.unit().put(job_state(&name(number), 1), None)));
        if has_future {
            drop(ahead.commit());
        } else {
            drop(ahead);
        }
        assert_eq!(writer.record(&key(7)), None);
    }
    writer.put(&job_state(&name(7), 3));
    let found: [Option<Record>; 2] = [7, 8].map(|number| writer.record(&key(number)));
    assert_eq!(found, [Some(job_state(&name(7), 3)), None]);
}

/// Other commits do not wait for prepared units, and win if they change the same records.
pub fn other_commits_come_before_prepared_units(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let mut other = TestWriter::of(subject);
    let rounds = 0..6;
    let (contended, free) = (|round| format!("a{round}"), |round| format!("b{round}"));
    let mut ahead = Arc::clone(&writer.store).begin_ahead();
    for round in rounds.clone() {
        push(&mut *ahead, [contended(round), free(round)].map(|name| writer.unit().put(job_state(&name, 1), None)));
        other.put(&job_state(&contended(round), 9));
    }
    let conflict = |round| Err(UnitRefusal::Conflict(job_state(&contended(round), 0).key()));
    let expected: Vec<_> = rounds.clone().flat_map(|round| [conflict(round), Ok(UnitReceipt::default())]).collect();
    assert_eq!(block_on(ahead.commit()), expected);
    for round in rounds {
        let found = [contended(round), free(round)].map(|name| other.record(&job_state(&name, 0).key()));
        assert_eq!(found, [Some(job_state(&contended(round), 9)), Some(job_state(&free(round), 1))]);
    }
}
