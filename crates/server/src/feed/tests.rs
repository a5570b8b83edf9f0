//! Readers of the feed: those who keep up, those who come back, and those who are too slow.

use cronhold_core::record::{Actor, JobState, Owner};
use cronhold_core::{JobUid, NodeId, RunNumber};
use cronhold_engine::Feed as _;
use cronhold_schedule::{Instant, Span};
use cronhold_store::Fault;

use super::*;

fn stamp(secs: i64) -> Stamp {
    let owner = Owner { node: NodeId::from_bits(9), incarnation: 3 };
    Stamp { at: Instant::from_secs(secs), actor: Actor::Schedule, owner }
}

fn commit(feed: &Feed, secs: i64, changes: Vec<Change>) {
    let done = Done { changes, ..Done::default() };
    feed.tell(&News::Committed { stamp: &stamp(secs), done: &done });
}

fn run(number: u64) -> Change {
    let at = Instant::from_secs(0);
    let id = RunId::from_key(at, &number.to_string());
    Change::Put(Record::Run(Arc::new(Run::blank(id, RunNumber(number), job(), JobUid::from_bits(1), at))))
}

fn job() -> JobId {
    JobId::parse("a").expect("an id")
}

/// What is there to be read at once.
fn now(reader: &mut Reader) -> Option<Read> {
    let mut next = std::pin::pin!(reader.next());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match next.as_mut().poll(&mut context) {
        std::task::Poll::Ready(read) => Some(read),
        std::task::Poll::Pending => None,
    }
}

/// Numbers of runs that are there to be read at once.
#[track_caller]
fn numbers(reader: &mut Reader) -> Vec<u64> {
    match now(reader) {
        None => Vec::new(),
        Some(Read::Gap(at)) => panic!("a gap up to {at:?}"),
        Some(Read::Events(events)) => events
            .into_iter()
            .map(|(_, event)| match event {
                Event::Run(run) => run.number.0,
                other => panic!("{other:?}"),
            })
            .collect(),
    }
}

#[test]
fn readers_get_what_comes_after_them() {
    let feed = Arc::new(Feed::default());
    let mut early = feed.reader(None);
    commit(&feed, 1, vec![run(1)]);
    let mut late = feed.reader(None);
    commit(&feed, 2, vec![run(2), run(3)]);
    assert_eq!(numbers(&mut early), [1, 2, 3]);
    assert_eq!(numbers(&mut late), [2, 3]);
    assert_eq!((numbers(&mut early), numbers(&mut late)), (vec![], vec![]));
    commit(&feed, 3, vec![run(4)]);
    assert_eq!((numbers(&mut early), numbers(&mut late)), (vec![4], vec![4]));
}

#[test]
fn who_comes_back_misses_nothing() {
    let feed = Arc::new(Feed::default());
    let mut first = feed.reader(None);
    commit(&feed, 1, vec![run(1), run(2)]);
    assert_eq!(numbers(&mut first), [1, 2]);
    let left_at = first.position();
    drop(first);
    commit(&feed, 2, vec![run(3)]);
    let mut again = feed.reader(Some(left_at));
    assert_eq!(numbers(&mut again), [3]);
    // Who has seen everything waits.
    let mut last = feed.reader(Some(again.position()));
    assert_eq!(now(&mut last), None);
}

#[test]
fn gaps_are_told() {
    let feed = Arc::new(Feed::default());
    let mut slow = feed.reader(None);
    commit(&feed, 1, vec![run(0)]);
    let epoch = feed.lock().epoch;
    assert_ne!(epoch, 0);
    for number in 0..KEPT_MAX as u64 {
        commit(&feed, 1, vec![run(number)]);
    }
    let latest = EventId { epoch, number: KEPT_MAX as u64 + 1 };
    assert_eq!(now(&mut slow), Some(Read::Gap(latest)));
    commit(&feed, 2, vec![run(7)]);
    assert_eq!(numbers(&mut slow), [7]);
    // Another life, and a number that nobody can have seen.
    let latest = EventId { epoch, number: latest.number + 1 };
    for after in [EventId { epoch: epoch + 1, number: 5 }, EventId { epoch, number: 999_999 }] {
        let mut stranger = feed.reader(Some(after));
        assert_eq!(now(&mut stranger), Some(Read::Gap(latest)), "{after:?}");
        assert_eq!(now(&mut stranger), None);
    }
    // Nothing is sent that is longer than a batch.
    let mut behind = feed.reader(Some(EventId { epoch, number: 1_000 }));
    assert_eq!(numbers(&mut behind).len(), BATCH_MAX);
}

#[test]
fn tells_what_is_worth_telling() {
    let feed = Arc::new(Feed::default());
    let mut reader = feed.reader(None);
    let pause = Pause { since: Instant::from_secs(2), by: Actor::Schedule, why: String::new() };
    let state = |current: Option<&Pause>, last| {
        let pauses = Pauses { current: current.cloned(), last };
        Change::Put(Record::JobState(Arc::new(JobState { pauses, ..JobState::new(job()) })))
    };
    commit(&feed, 1, vec![state(None, None)]);
    commit(&feed, 2, vec![state(Some(&pause), None)]);
    commit(&feed, 3, vec![state(Some(&pause), None), Change::Delete(Key::JobState(job()))]);
    commit(&feed, 4, vec![state(None, Some((Instant::from_secs(2), Instant::from_secs(4))))]);
    commit(
        &feed,
        5,
        vec![state(None, Some((Instant::from_secs(2), Instant::from_secs(4)))), Change::Delete(Key::Job(job()))],
    );
    feed.tell(&News::StoreAway(&Fault::Away("gone".to_owned())));
    feed.tell(&News::StoreBack);
    feed.tell(&News::ClockStep { forward: true, by: Span::from_secs(60) });
    feed.tell(&News::RecordUnreadable { key: None, reason: "not a record" });
    let Some(Read::Events(events)) = now(&mut reader) else { panic!("there are events") };
    let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
    assert_eq!(
        events,
        [
            Event::Pause(Some(job()), Some(pause)),
            Event::Pause(Some(job()), None),
            Event::Job(job(), None),
            Event::Store(Some("the store is unavailable: gone".to_owned())),
            Event::Store(None),
            Event::Node("its clock was set forward by 1m".to_owned()),
        ]
    );
}
