//! Gives each event an identity that is the same in all processes. Cronken's events have no ids: two equal texts may be
//! one event that two processes received, or two events.
//!
//! Processes publish *marks* on a channel of their own. A mark is unique: it has a number from a counter in the store,
//! and the server's time. Each process subscribes to both channels over one connection, and Redis delivers all messages
//! to all subscribers in the order in which it executed their `PUBLISH`. So all processes agree which events stand
//! between two marks and in which order, and an event is identified by the last mark before it, its text, and how many
//! equal texts there were since that mark.
//!
//! An event is passed on when the mark after it arrives. Whoever receives an event publishes that mark immediately, so
//! this takes one round trip. All processes see the same mark with the same time, which is the earliest time at which
//! any process can act on the event. So a process that was stopped for long knows how old the event is, although it
//! receives it only now.
//!
//! A process that has just subscribed, or whose connection broke, has missed a part. It cannot identify events before
//! the first mark that it receives; it publishes one when it subscribes. Processes that have been there all along can,
//! so the others leave these events to them. If two processes are subscribed to different servers, which a failover can
//! cause for a moment, the order is not common, and an event may be identified differently.

use std::collections::BTreeMap;

use cronhold_schedule::Instant;
use cronhold_store::{EventPlace, SharedEvent};

/// Events between two marks. When there are more, the order is given up until the next mark, and the oldest are dropped.
const OPEN_MAX: usize = 10_000;

/// Identifies events by the marks around them.
#[derive(Debug, Default)]
pub(super) struct EventSequencer {
    /// The last mark; `None` if messages may have been missed since.
    mark: Option<EventMark>,
    /// How often each text occurred since that mark.
    counts: BTreeMap<String, u64>,
    /// Events that wait for the next mark.
    open: Vec<OpenEvent>,
    /// Events that were dropped.
    dropped: u64,
}

/// A mark between events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventMark {
    number: u64,
    at: Instant,
}

#[derive(Debug)]
struct OpenEvent {
    text: String,
    /// The mark before it and its index; `None` if that is unknown.
    place: Option<(String, u64)>,
}

impl EventMark {
    /// Parses a mark as the script publishes it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (number, micros) = text.split_once(' ')?;
        Some(Self { number: number.parse().ok()?, at: Instant::from_micros(micros.parse().ok()?) })
    }

    fn id(&self) -> String {
        format!("{} {}", self.number, self.at.micros())
    }
}

impl EventSequencer {
    /// Whether a mark has to be published.
    pub(super) fn needs_mark(&self) -> bool {
        self.mark.is_none() || !self.open.is_empty()
    }

    /// Whether this mark or a later one has arrived.
    pub(super) fn has_seen(&self, mark: &EventMark) -> bool {
        self.mark.as_ref().is_some_and(|seen| seen.number >= mark.number)
    }

    /// An event has arrived.
    pub(super) fn receive(&mut self, text: String) {
        if self.open.len() == OPEN_MAX {
            self.miss();
            self.open.remove(0);
            self.dropped += 1;
        }
        let place = self.mark.as_ref().map(|mark| {
            let count = self.counts.entry(text.clone()).or_default();
            *count += 1;
            (mark.id(), *count - 1)
        });
        self.open.push(OpenEvent { text, place });
    }

    /// A mark has arrived. Returns the events before it.
    pub(super) fn close(&mut self, mark: EventMark) -> Vec<SharedEvent> {
        self.counts.clear();
        let marked_at = mark.at;
        self.mark = Some(mark);
        let events = std::mem::take(&mut self.open).into_iter().map(|OpenEvent { text, place }| SharedEvent {
            text,
            place: place.map(|(mark, index)| EventPlace { mark, index, marked_at }),
        });
        events.collect()
    }

    /// Messages may have been missed. Events that wait for their mark may have missed it.
    pub(super) fn miss(&mut self) {
        self.mark = None;
        self.counts.clear();
        self.open.iter_mut().for_each(|event| event.place = None);
    }

    /// How many events were dropped because no mark arrived.
    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn mark(number: u64) -> EventMark {
        EventMark::parse(&format!("{number} {}", number * 1_000)).expect("a mark")
    }

    /// What the server delivers: an event, or a mark.
    #[derive(Clone)]
    enum Message {
        Event(&'static str),
        Mark(u64),
    }
    use Message::{Event, Mark};

    /// What one process passes on of these messages. It misses those before `from` and in the range `gap`.
    fn received(messages: &[Message], from: usize, gap: std::ops::Range<usize>) -> Vec<SharedEvent> {
        let (mut sequencer, mut events) = (EventSequencer::default(), Vec::new());
        for (place, message) in messages.iter().enumerate().skip(from) {
            if gap.contains(&place) {
                continue;
            }
            if place == gap.end {
                sequencer.miss();
            }
            match message {
                Event(text) => sequencer.receive((*text).to_owned()),
                Mark(number) => events.extend(sequencer.close(mark(*number))),
            }
        }
        events
    }

    /// Messages with equal events everywhere, in an arbitrary but fixed order.
    fn messages() -> Vec<Message> {
        let mut state: u64 = 7;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut marks = 0;
        let mut messages = vec![Mark(0)];
        for _ in 0..300 {
            match next(5) {
                0 => {
                    marks += 1;
                    messages.push(Mark(marks));
                }
                1 => messages.push(Event("pause")),
                _ => messages.push(Event("trigger")),
            }
        }
        messages.push(Mark(marks + 1));
        messages
    }

    #[test]
    fn processes_agree_on_the_identity_of_each_event() {
        let messages = messages();
        let all = received(&messages, 0, 0..0);
        let sent = messages.iter().filter(|message| matches!(message, Event(_))).count();
        let identities: BTreeSet<_> = all
            .iter()
            .map(|event| {
                let place = event.place.as_ref().expect("nothing was missed");
                (place.mark.clone(), place.index, event.text.clone())
            })
            .collect();
        assert_eq!((all.len(), identities.len()), (sent, sent), "equal events are different events");
        // Processes that subscribe late or lose their connection.
        for from in [0, 1, 2, 40, 41, 200] {
            for gap in [0..0, 50..51, 50..90, 100..230, 290..301] {
                let known: Vec<_> = received(&messages, from, gap.clone());
                let placed = known.iter().filter(|event| event.place.is_some());
                for event in placed.clone() {
                    assert!(all.contains(event), "from {from}, without {gap:?}: {event:?}");
                }
                let unplaced = known.len() - placed.count();
                assert!(unplaced <= 60, "from {from}, without {gap:?}: {unplaced} events have no identity");
            }
        }
    }

    #[test]
    fn events_wait_for_the_mark_after_them() {
        let mut sequencer = EventSequencer::default();
        assert!(sequencer.needs_mark(), "a new subscriber publishes one");
        sequencer.receive("early".to_owned());
        let early = sequencer.close(mark(4));
        assert_eq!(early, [SharedEvent { text: "early".to_owned(), place: None }]);
        assert!(!sequencer.needs_mark() && sequencer.has_seen(&mark(4)) && !sequencer.has_seen(&mark(5)));
        sequencer.receive("a".to_owned());
        sequencer.receive("a".to_owned());
        assert!(sequencer.needs_mark());
        let place = |index| Some(EventPlace { mark: mark(4).id(), index, marked_at: mark(5).at });
        let events = sequencer.close(mark(5));
        assert_eq!(events.iter().map(|event| event.place.clone()).collect::<Vec<_>>(), [place(0), place(1)]);
        // The mark after it may have been missed with other messages.
        sequencer.receive("a".to_owned());
        sequencer.miss();
        assert_eq!(sequencer.close(mark(7)), [SharedEvent { text: "a".to_owned(), place: None }]);
    }

    #[test]
    fn too_many_open_events_are_dropped_and_lose_their_place() {
        let mut sequencer = EventSequencer::default();
        sequencer.close(mark(1));
        (0..OPEN_MAX + 2).for_each(|number| sequencer.receive(number.to_string()));
        assert_eq!((sequencer.take_dropped(), sequencer.take_dropped()), (2, 0));
        let events = sequencer.close(mark(2));
        assert_eq!((events.len(), events[0].text.as_str()), (OPEN_MAX, "2"));
        assert!(events.iter().all(|event| event.place.is_none()));
    }
}
