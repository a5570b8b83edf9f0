//! What is remembered of what was written, and for how long.

use std::time::Duration;

use tokio::time::Instant;

use super::Heal;
use super::memory::{Memory, Took, Written};
use super::wait::Wait;

const JOB: u8 = 1;
const RUN: u8 = 6;

fn written(kind: u8, field: &str, lasts: bool) -> Written {
    Written { kind, field: field.to_owned(), body: b"body".to_vec(), shown: Vec::new(), lasts }
}

fn took(lock: &str, holder: &str, fence: Option<u64>) -> Took {
    let (lock, holder) = (lock.to_owned(), holder.to_owned());
    Took { lock, holder, fence: fence.unwrap_or_default(), life: 20_000, is_taken: fence.is_some() }
}

fn fields(memory: &Memory, since: u64) -> Vec<String> {
    memory.lost_since(since).records.into_iter().map(|lost| lost.what.field).collect()
}

fn locks(memory: &Memory) -> Vec<String> {
    memory.lost_since(0).locks.into_iter().map(|lost| lost.what.lock).collect()
}

#[test]
fn the_last_word_of_each_record_is_remembered() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    memory.remember(5, "v5", vec![written(JOB, "a", true), written(JOB, "b", true)], Vec::new(), now);
    memory.remember(7, "v7", vec![written(JOB, "a", true)], Vec::new(), now);
    assert_eq!(fields(&memory, 0), ["a", "b"]);
    assert_eq!(fields(&memory, 5), ["a"], "what the store still has is not brought back");
    assert_eq!(fields(&memory, 7), [""; 0]);
    memory.forget(JOB, "a");
    assert_eq!(fields(&memory, 0), ["b"], "what somebody else has written since is theirs");
    let lost = &memory.lost_since(0).records[0];
    assert_eq!(lost.what.stored(&lost.version, lost.seq), b"v5 0000000000000005 body");
}

#[test]
fn what_has_ended_is_forgotten_in_time() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    memory.remember(1, "v", vec![written(RUN, "ends", true), written(RUN, "lives", true)], Vec::new(), now);
    memory.remember(2, "v", vec![written(RUN, "ends", false)], Vec::new(), now);
    memory.remember(3, "v", Vec::new(), Vec::new(), now + Duration::from_secs(59));
    assert_eq!(fields(&memory, 0), ["ends", "lives"]);
    memory.remember(4, "v", Vec::new(), Vec::new(), now + Duration::from_secs(61));
    assert_eq!(fields(&memory, 0), ["lives"]);
}

#[test]
fn what_has_ended_is_bounded() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    for seq in 0..30_000 {
        memory.remember(seq, "v", vec![written(RUN, &format!("{seq:08}"), false)], Vec::new(), now);
    }
    let kept = fields(&memory, 0);
    assert_eq!((kept.len(), kept[0].as_str()), (20_000, "00010000"));
}

#[test]
fn locks_are_remembered_while_their_runs_have_not_ended() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    memory.remember(1, "v", vec![written(RUN, "r", true)], vec![took("lock", "r", Some(9))], now);
    memory.remember(2, "v", Vec::new(), vec![took("event", "nobody", Some(1))], now);
    assert_eq!(locks(&memory), ["lock"]);
    assert_eq!(memory.lost_since(0).locks[0].what.token("v"), "r:9:v:20000:brought-back");
    memory.remember(3, "v", Vec::new(), vec![took("lock", "other", None)], now);
    assert_eq!(locks(&memory), ["lock"], "only its holder frees it");
    memory.remember(4, "v", vec![written(RUN, "r", false)], Vec::new(), now);
    assert_eq!(locks(&memory), [""; 0], "its run has ended");
    memory.remember(5, "v", vec![written(RUN, "r", true)], vec![took("lock", "r", None)], now);
    assert_eq!(locks(&memory), [""; 0]);
}

#[test]
fn what_is_committed_after_the_store_was_healed_is_the_last_word_whatever_its_number() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    memory.remember(7, "v7", vec![written(JOB, "a", true)], Vec::new(), now);
    memory.remember(5, "v5", vec![written(JOB, "a", true)], Vec::new(), now);
    assert_eq!(memory.lost_since(0).records[0].version, "v7", "its answer was only heard later");
    memory.is_healed();
    memory.remember(3, "v3", vec![written(JOB, "a", true)], Vec::new(), now);
    assert_eq!(memory.lost_since(0).records[0].version, "v3");
}

#[test]
fn what_others_have_changed_is_forgotten_unless_it_was_written_once_more() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    let deleted = Written { body: Vec::new(), ..written(JOB, "c", false) };
    memory.remember(1, "v1", vec![written(JOB, "a", true), written(JOB, "b", true), deleted], Vec::new(), now);
    let looked_at = memory.remembered(None, 2);
    let rest = memory.remembered(Some(&looked_at[1].0), 2);
    let stored: Vec<_> = looked_at.iter().chain(&rest).map(|(_, word)| word.stored()).collect();
    assert_eq!(stored, ["v1", "v1", ""]);
    memory.remember(2, "v2", vec![written(JOB, "b", true)], Vec::new(), now);
    for (place, word) in &looked_at {
        memory.forget_version(place, word);
    }
    assert_eq!(fields(&memory, 0), ["b", "c"]);
}

#[test]
fn nothing_is_committed_for_as_long_as_a_lease_may_last_somewhere() {
    let wait = Wait::default();
    assert_eq!(wait.millis(), 45_500);
    wait.saw(10_000);
    assert_eq!(wait.millis(), 45_500, "others may have runs with longer leases");
    wait.saw(90_000);
    wait.saw(20_000);
    assert_eq!(wait.millis(), 90_000);
    wait.set_least(1);
    assert_eq!(wait.millis(), 90_000);
}

/// A mark that a job was removed lives for years. It says nothing of programs that must be alone.
#[test]
fn locks_of_our_own_are_not_waited_for() {
    let heal = Heal::default();
    let years = 10 * 365 * 86_400_000;
    heal.remember(1, "v", Vec::new(), vec![Took { life: years, ..took("#cronhold/removed/a", "nobody", Some(1)) }]);
    assert_eq!(heal.wait.millis(), 45_500);
    heal.remember(2, "v", Vec::new(), vec![Took { life: 90_000, ..took("a", "r", Some(1)) }]);
    assert_eq!(heal.wait.millis(), 90_000);
}

#[test]
fn marks_are_remembered_for_a_while_until_they_are_taken_away() {
    let mark = |lock: &str| Took { life: 86_400_000, ..took(lock, "nobody", Some(1)) };
    let (mut memory, now) = (Memory::default(), Instant::now());
    memory.remember(1, "v", Vec::new(), vec![mark("#cronhold/removed/a"), mark("#cronhold/removed/b")], now);
    memory.remember(2, "v", Vec::new(), vec![took("#cronhold/event/1", "nobody", Some(1)), mark("no mark")], now);
    assert_eq!(locks(&memory), ["#cronhold/removed/a", "#cronhold/removed/b"]);
    memory.remember(3, "v", Vec::new(), vec![took("#cronhold/removed/a", "nobody", None)], now);
    assert_eq!(locks(&memory), ["#cronhold/removed/b"]);
    assert!(memory.lost_since(1).locks.is_empty(), "the store still has it");
    memory.remember(4, "v", Vec::new(), Vec::new(), now + Duration::from_secs(61));
    assert_eq!(locks(&memory), [""; 0]);
}
