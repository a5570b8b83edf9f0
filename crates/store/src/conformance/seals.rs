//! Cases about seals: a sealed store refuses changes, and everything else continues.

use cronhold_core::State;
use cronhold_core::record::RecordKind;
use cronhold_schedule::Span;

use super::samples::{at, job_state, lock_name, node, run_id, run_in};
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::{Chunk, Fault, Query, StoreHealthReport, UnitReceipt, UnitRefusal};

const TTL: Span = Span::from_millis(1_500);
/// Less than the time to live; twice this is more.
const PART: Span = Span::from_millis(1_000);

/// A sealed store refuses commits, appends and deletions with the reason, for all handles and after it is opened again.
pub fn sealed_store_refuses_changes(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (record, run) = (job_state("a", 1), run_id(1, 1));
    let version = writer.put(&record);
    block_on(writer.store.append(run, 0, b"abc")).expect("appended");
    assert_eq!(sealed(&writer), None);
    block_on(writer.store.seal("it moves")).expect("sealed");
    block_on(writer.store.seal("it moves to größe")).expect("sealed with another reason");
    let other = TestWriter::of(subject);
    check_sealed(&mut writer);
    drop((writer, other));

    let mut writer = TestWriter::on(subject.reopen());
    check_sealed(&mut writer);
    assert_eq!(writer.version(&record.key()), Some(version));
    block_on(writer.store.unseal()).expect("unsealed");
    block_on(writer.store.unseal()).expect("unsealed again");
    let change = writer.unit().put(job_state("a", 2), Some(version));
    assert_eq!(writer.commit(change), Ok(UnitReceipt::default()));
    assert_eq!(block_on(writer.store.append(run, 3, b"d")), Ok(4));
    assert_eq!(sealed(&writer), None);
    assert_eq!(block_on(writer.store.drop_outputs(&[run])), Ok(()));
}

fn check_sealed(writer: &mut TestWriter) {
    let run = run_id(1, 1);
    let change = writer.unit().put(job_state("a", 3), None).take(&lock_name("l"), run, None);
    let empty = writer.unit();
    for result in writer.commit_all(vec![change, empty.put(job_state("b", 1), None)]) {
        assert!(
            matches!(&result, Err(UnitRefusal::Fault(Fault::ReadOnly(text))) if text.contains("größe")),
            "{result:?}"
        );
    }
    assert!(matches!(block_on(writer.store.append(run, 3, b"d")), Err(Fault::ReadOnly(_))));
    assert!(matches!(block_on(writer.store.drop_outputs(&[run])), Err(Fault::ReadOnly(_))));
    assert!(matches!(block_on(writer.store.expire_locks(at(0))), Err(Fault::ReadOnly(_))));
    let chunk = Chunk { bytes: b"abc".to_vec(), length: 3 };
    assert_eq!(block_on(writer.store.read(run, 0, 9)), Ok(chunk), "reads continue");
    assert_eq!(writer.page(&Query::JobStates { after: None }, 9).len(), 1);
    assert_eq!(block_on(writer.store.walk(RecordKind::JobState, None, 9)).expect("a walk").records.len(), 1);
    assert_eq!(writer.holder(&lock_name("l")), None);
    assert_eq!(sealed(writer), Some("it moves to größe".to_owned()));
}

/// Heartbeats of a sealed store renew locks, so that programs with leases continue.
pub fn heartbeats_renew_locks_of_a_sealed_store(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (lock, mine) = (lock_name("l"), run_id(0, 1));
    writer.put(&run_in(mine, "a", State::Running, Some(1)));
    let fence = writer.take(&lock, mine, Some(TTL)).expect("the lock is free");
    block_on(writer.store.seal("it moves")).expect("sealed");
    for _ in 0..3 {
        subject.pass(PART);
        assert_eq!(writer.beat(&node(1, "n"), &[(lock.clone(), mine)]), []);
    }
    let held = writer.lock(&lock).expect("it was renewed");
    assert_eq!((held.holder, held.fence), (mine, fence));
    block_on(writer.store.unseal()).expect("unsealed");
    writer.free(&lock, mine);
}

/// Why the store is sealed, by its health. A request for the time brings it up to date for a handle that does not write.
fn sealed(writer: &TestWriter) -> Option<String> {
    block_on(writer.store.time()).expect("it has a time");
    let StoreHealthReport { sealed, .. } = block_on(writer.store.health());
    sealed
}
