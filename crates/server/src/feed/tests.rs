//! Readers of the feed: those that keep up, those that reconnect, and those that are too slow.

use cronhold_core::record::{Actor, JobState, Run, RunOwner};
use cronhold_core::{JobUid, RunNumber};
use cronhold_engine::EngineObserver as _;
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, UnreadableRecord};

use super::*;

fn stamp(secs: i64) -> CommandStamp {
    let owner = RunOwner { node: NodeId::from_bits(9), incarnation: 3 };
    CommandStamp { at: Instant::from_secs(secs), actor: Actor::Schedule, owner }
}

fn commit(feed: &FeedBuffer, secs: i64, changes: Vec<RecordChange>) {
    let done = DecidedUnit { changes, ..DecidedUnit::default() };
    feed.on_event(&EngineEvent::Committed { stamp: &stamp(secs), done: &done });
}

fn run(number: u64) -> RecordChange {
    let at = Instant::from_secs(0);
    let id = RunId::from_key(at, &number.to_string());
    RecordChange::Put(Record::Run(Arc::new(Run::blank(id, RunNumber(number), job(), JobUid::from_bits(1), at))))
}

fn job() -> JobId {
    JobId::parse("a").expect("an id")
}

/// The events that are available without waiting.
fn now(reader: &mut FeedReader) -> Option<FeedRead> {
    let mut next = std::pin::pin!(reader.next());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match next.as_mut().poll(&mut context) {
        std::task::Poll::Ready(read) => Some(read),
        std::task::Poll::Pending => None,
    }
}

/// The numbers of the runs that are available without waiting.
#[track_caller]
fn numbers(reader: &mut FeedReader) -> Vec<u64> {
    match now(reader) {
        None => Vec::new(),
        Some(FeedRead::Gap(at)) => panic!("a gap up to {at:?}"),
        Some(FeedRead::Events(events)) => events
            .into_iter()
            .map(|(_, event)| match &event.entry {
                FeedEntry::Run(run) => run.to_run().number.0,
                other => panic!("{other:?}"),
            })
            .collect(),
    }
}

#[test]
fn readers_get_events_after_their_start() {
    let feed = Arc::new(FeedBuffer::default());
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
fn reconnected_reader_misses_no_events() {
    let feed = Arc::new(FeedBuffer::default());
    let mut first = feed.reader(None);
    commit(&feed, 1, vec![run(1), run(2)]);
    assert_eq!(numbers(&mut first), [1, 2]);
    let left_at = first.position();
    drop(first);
    commit(&feed, 2, vec![run(3)]);
    let mut again = feed.reader(Some(left_at));
    assert_eq!(numbers(&mut again), [3]);
    // A reader that has received everything waits.
    let mut last = feed.reader(Some(again.position()));
    assert_eq!(now(&mut last), None);
}

#[test]
fn slow_or_unknown_reader_gets_a_gap() {
    let feed = Arc::new(FeedBuffer::default());
    let mut slow = feed.reader(None);
    commit(&feed, 1, vec![run(0)]);
    let epoch = feed.lock().epoch;
    assert_ne!(epoch, 0);
    for number in 0..KEPT_MAX as u64 {
        commit(&feed, 1, vec![run(number)]);
    }
    let latest = EventId { epoch, number: KEPT_MAX as u64 + 1 };
    assert_eq!(now(&mut slow), Some(FeedRead::Gap(latest)));
    commit(&feed, 2, vec![run(7)]);
    assert_eq!(numbers(&mut slow), [7]);
    // An id of another start, and a number that does not exist yet.
    let latest = EventId { epoch, number: latest.number + 1 };
    for after in [EventId { epoch: epoch + 1, number: 5 }, EventId { epoch, number: 999_999 }] {
        let mut unknown = feed.reader(Some(after));
        assert_eq!(now(&mut unknown), Some(FeedRead::Gap(latest)), "{after:?}");
        assert_eq!(now(&mut unknown), None);
    }
    // A read returns at most one batch.
    let mut behind = feed.reader(Some(EventId { epoch, number: 1_000 }));
    assert_eq!(numbers(&mut behind).len(), BATCH_MAX);
}

#[test]
fn only_relevant_changes_become_events() {
    let feed = Arc::new(FeedBuffer::default());
    let mut reader = feed.reader(None);
    let pause = ActivePause { since: Instant::from_secs(2), by: Actor::Schedule, why: String::new(), until: None };
    let state = |current: Option<&ActivePause>, last| {
        let pauses = PauseState { current: current.cloned(), last };
        RecordChange::Put(Record::JobState(Arc::new(JobState { pauses, ..JobState::new(job()) })))
    };
    commit(&feed, 1, vec![state(None, None)]);
    commit(&feed, 2, vec![state(Some(&pause), None)]);
    commit(&feed, 3, vec![state(Some(&pause), None), RecordChange::Delete(RecordKey::JobState(job()))]);
    commit(&feed, 4, vec![state(None, Some((Instant::from_secs(2), Instant::from_secs(4))))]);
    commit(
        &feed,
        5,
        vec![
            state(None, Some((Instant::from_secs(2), Instant::from_secs(4)))),
            RecordChange::Delete(RecordKey::Job(job())),
        ],
    );
    feed.on_event(&EngineEvent::StoreUnavailable(&Fault::Unavailable("gone".to_owned())));
    feed.on_event(&EngineEvent::StoreAvailable);
    feed.on_event(&EngineEvent::ClockStep { forward: true, by: Span::from_secs(60) });
    let unreadable = |key| UnreadableRecord { key, version: None, reason: "not a record".to_owned() };
    feed.on_event(&EngineEvent::RecordUnreadable(&unreadable(None)));
    feed.on_event(&EngineEvent::RecordUnreadable(&unreadable(Some(RecordKey::Job(job())))));
    feed.on_event(&EngineEvent::RecordUnreadable(&unreadable(Some(RecordKey::Job(job())))));
    assert_eq!(feed.unreadable_records(), 2, "each counts once");
    let Some(FeedRead::Events(events)) = now(&mut reader) else { panic!("there are events") };
    let events: Vec<FeedEntry> = events.into_iter().map(|(_, event)| event.entry.clone()).collect();
    assert_eq!(
        events,
        [
            FeedEntry::Pause(Some(job()), Some(pause)),
            FeedEntry::Pause(Some(job()), None),
            FeedEntry::Job(job(), None),
            FeedEntry::Store(Some("the store is unavailable: gone".to_owned())),
            FeedEntry::Store(None),
            FeedEntry::Node("the clock was set forward by 1m".to_owned()),
        ]
    );
}

#[test]
fn event_is_serialised_once_for_all_readers() {
    let feed = Arc::new(FeedBuffer::default());
    let mut readers = [feed.reader(None), feed.reader(None)];
    commit(&feed, 1, vec![run(1)]);
    let texts = readers.each_mut().map(|reader| {
        let Some(FeedRead::Events(events)) = now(reader) else { panic!("there are events") };
        events[0].1.text(|_| String::from("serialised")).as_ptr()
    });
    assert_eq!(texts[0], texts[1]);
}
