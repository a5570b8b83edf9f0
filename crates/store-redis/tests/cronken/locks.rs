//! Locks as other programs see them.

use cronhold_core::RunId;
use cronhold_core::record::{Record, RecordKey};
use cronhold_schedule::{Instant, Span};
use cronhold_store::UnitRefusal;
use cronhold_store_redis::testing::until;
use serde_json::json;

use crate::fixture::{Fixture, NS, lock_name};

/// The key of the lock `backup`.
const BACKUP: &str = "locks:89121dc99c7db9ce2553a093a2ab29e07f7df34f";

fn run(number: u8) -> RunId {
    RunId::from_random(Instant::from_secs(1_767_225_600), [0, 0, 0x3f, number, 0, 0, 0, 0, 0, 0])
}

fn millis(fixture: &Fixture, key: &str) -> i64 {
    fixture.at("PTTL", key, &[]).as_i64().expect("milliseconds")
}

#[test]
fn held_lock_is_a_key() {
    let fixture = Fixture::new();
    let (lock, holder) = (lock_name("backup"), run(1));
    let fence = fixture.take(&lock, holder, Some(Span::from_secs(10))).expect("it is free");
    assert_eq!(fixture.kind(BACKUP), "string");
    let token = fixture.at("GET", BACKUP, &[]).as_str().expect("a text").to_owned();
    let parts: Vec<&str> = token.split(':').collect();
    assert_eq!(
        (parts.len(), parts[0], parts[1], parts[3]),
        (5, &*holder.to_string(), &*fence.to_string(), "10001"),
        "{token}"
    );
    assert!(parts[4].len() >= 16, "{token} ends with chance");
    let rest = millis(&fixture, BACKUP);
    assert!((5_000..=10_001).contains(&rest), "{rest}");

    fixture.at("PEXPIRE", BACKUP, &["3000"]);
    assert_eq!(fixture.beat(&[(lock.clone(), holder)]), []);
    assert!(millis(&fixture, BACKUP) > 5_000, "a beat renews it");
    assert_eq!(fixture.at("GET", BACKUP, &[]), json!(token), "and leaves it as it was");

    fixture.free(&lock, run(2));
    assert_eq!(fixture.kind(BACKUP), "string", "another does not free it");
    fixture.free(&lock, holder);
    assert_eq!(fixture.kind(BACKUP), "none");
}

#[test]
fn lock_without_ttl_does_not_expire() {
    let fixture = Fixture::new();
    fixture.take(&lock_name("backup"), run(1), None).expect("it is free");
    assert_eq!(millis(&fixture, BACKUP), -1);
    assert_eq!(fixture.beat(&[(lock_name("backup"), run(1))]), []);
    assert_eq!(millis(&fixture, BACKUP), -1);
}

#[test]
fn lock_tokens_are_unique() {
    let fixture = Fixture::new();
    let token = || {
        fixture.take(&lock_name("backup"), run(1), Some(Span::from_secs(10))).expect("it is free");
        let token = fixture.at("GET", BACKUP, &[]);
        fixture.free(&lock_name("backup"), run(1));
        token.as_str().and_then(|token| token.rsplit(':').next().map(str::to_owned)).expect("a text")
    };
    assert_ne!(token(), token());
}

#[test]
fn lock_of_cronken_is_respected() {
    let fixture = Fixture::new();
    let lock = lock_name("backup");
    fixture.command(&["SET", &format!("{NS}:{BACKUP}"), "3f2a9c", "PX", "60000"]);
    let refused = fixture.take(&lock, run(1), Some(Span::from_secs(10)));
    assert!(matches!(&refused, Err(UnitRefusal::Held { lock: held, .. }) if *held == lock), "{refused:?}");
    let Some((_, Record::Lock(state))) = fixture.load(&RecordKey::Lock(lock.clone())) else {
        panic!("the lock must be held")
    };
    assert!(matches!(refused, Err(UnitRefusal::Held { holder, .. }) if holder == state.holder));
    fixture.free(&lock, run(1));
    fixture.free(&lock, state.holder);
    assert_eq!(fixture.beat(&[(lock.clone(), run(1))]), [lock], "ours is lost");
    assert_eq!(fixture.at("GET", BACKUP, &[]), json!("3f2a9c"));
}

#[test]
fn expired_lock_can_be_taken() {
    let fixture = Fixture::new();
    let lock = lock_name("backup");
    let first = fixture.take(&lock, run(1), Some(Span::from_millis(30))).expect("it is free");
    until("the lock has run out", || (fixture.kind(BACKUP) == "none").then_some(()));
    let second = fixture.take(&lock, run(2), Some(Span::from_secs(10))).expect("it is free again");
    assert!(second > first);
    assert_eq!(fixture.beat(&[(lock.clone(), run(1))]), [lock]);
}

#[test]
fn released_lock_stays_for_peers_until_its_occurrence_is_old() {
    let fixture = Fixture::with("peers=cronken");
    let lock = lock_name("backup");
    // An old occurrence: no clock is that late.
    fixture.take(&lock, run(1), Some(Span::from_secs(10))).expect("it is free");
    fixture.free(&lock, run(1));
    assert_eq!(fixture.kind(BACKUP), "none");
    // A current occurrence.
    let now = fixture.run("backup").id;
    fixture.take(&lock, now, Some(Span::from_secs(10))).expect("it is free");
    fixture.free(&lock, now);
    let rest = millis(&fixture, BACKUP);
    assert!((1..=2_000).contains(&rest), "{rest}");
    let python = fixture.command(&["SET", &format!("{NS}:{BACKUP}"), "3f2a9c", "NX", "PX", "60000"]);
    assert_eq!(python, json!(null), "other programs do not get it");
    assert_eq!(fixture.load(&RecordKey::Lock(lock.clone())), None, "for us it is free");
    assert_eq!(fixture.beat(&[(lock.clone(), now)]), std::slice::from_ref(&lock), "the lock is lost");
    let again = fixture.run("backup").id;
    fixture.take(&lock, again, Some(Span::from_secs(10))).expect("we get it");
    assert!(millis(&fixture, BACKUP) > 5_000);
    fixture.free(&lock, again);
    until("it is gone", || (fixture.kind(BACKUP) == "none").then_some(()));
}
