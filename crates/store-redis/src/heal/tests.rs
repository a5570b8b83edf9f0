//! What is remembered of what was written, and for how long.

use std::time::Duration;

use tokio::time::Instant;

use super::memory::{Memory, Took, Written};

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
    assert_eq!((locks(&memory), memory.longest_life()), (vec!["lock".to_owned()], 20_000));
    assert_eq!(memory.lost_since(0).locks[0].what.token("v"), "r:9:v:20000:brought-back");
    memory.remember(3, "v", Vec::new(), vec![took("lock", "other", None)], now);
    assert_eq!(locks(&memory), ["lock"], "only its holder frees it");
    memory.remember(4, "v", vec![written(RUN, "r", false)], Vec::new(), now);
    assert_eq!(locks(&memory), [""; 0], "its run has ended");
    memory.remember(5, "v", vec![written(RUN, "r", true)], vec![took("lock", "r", None)], now);
    assert_eq!(locks(&memory), [""; 0]);
}
