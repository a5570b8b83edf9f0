//! A history while it is made: many threads write down when their calls began and ended, in one order for all.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use super::linear::{HistoryEvent, LinearVerdict, SequentialModel, check};

/// Gives out places in the order of time.
#[derive(Debug, Default)]
pub(super) struct EventOrder(AtomicU64);

/// Events that one thread has seen, each with the thing that it belongs to.
pub(super) type EventLog<C, A> = Vec<(usize, HistoryEvent<C, A>)>;

impl EventOrder {
    /// The next place.
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// Does something, and says when it began and ended.
    pub(super) fn time<R>(&self, act: impl FnOnce() -> R) -> (u64, u64, R) {
        let began = self.next();
        let result = act();
        (began, self.next(), result)
    }
}

/// Checks the notes of all threads, each thing by itself.
pub(super) fn assert_linear<M: SequentialModel>(model: &M, notes: Vec<EventLog<M::Call, M::Answer>>)
where
    M::Call: Debug + Clone,
    M::Answer: Debug + Clone,
{
    let mut of_thing: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for (thing, event) in notes.into_iter().flatten() {
        of_thing.entry(thing).or_default().push(event);
    }
    for (thing, history) in of_thing {
        let verdict = check(model, history.clone());
        if verdict != LinearVerdict::Linear {
            panic!("the history of thing {thing} is {verdict:?}:\n{}", told(history));
        }
    }
}

/// A history as lines, in the order of beginnings.
fn told<C: Debug, A: Debug>(mut history: Vec<HistoryEvent<C, A>>) -> String {
    history.sort_by_key(|event| event.began);
    let line =
        |event: &HistoryEvent<C, A>| format!("{}-{} {:?}: {:?}", event.began, event.ended, event.call, event.answer);
    history.iter().map(line).collect::<Vec<_>>().join("\n")
}
