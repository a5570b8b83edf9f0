//! Records a history: many threads record when their calls began and ended, in one total order.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use super::linear::{HistoryEvent, LinearVerdict, SequentialModel, check};

/// Assigns positions in the order of time.
#[derive(Debug, Default)]
pub(super) struct EventOrder(AtomicU64);

/// Events of one thread, each with the index of the object that it belongs to.
pub(super) type EventLog<C, A> = Vec<(usize, HistoryEvent<C, A>)>;

impl EventOrder {
    /// The next position.
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// Runs a call, and returns the positions of its start and its end with the result.
    pub(super) fn time<R>(&self, act: impl FnOnce() -> R) -> (u64, u64, R) {
        let began = self.next();
        let result = act();
        (began, self.next(), result)
    }
}

/// Checks the events of all threads, each object separately.
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
            panic!("the history of thing {thing} is {verdict:?}:\n{}", format_history(history));
        }
    }
}

/// A history as lines, ordered by start.
fn format_history<C: Debug, A: Debug>(mut history: Vec<HistoryEvent<C, A>>) -> String {
    history.sort_by_key(|event| event.began);
    let line =
        |event: &HistoryEvent<C, A>| format!("{}-{} {:?}: {:?}", event.began, event.ended, event.call, event.answer);
    history.iter().map(line).collect::<Vec<_>>().join("\n")
}
