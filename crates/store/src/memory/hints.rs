//! Hints for other handles: a bounded queue each. A handle that does not listen loses the oldest ones, which is what
//! hints are allowed to do.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Poll, Waker};

use crate::Hint;

/// So many hints wait for one handle.
const WAITING_MAX: usize = 4_096;

/// Tells handles apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HandleId(u64);

/// What every handle has not heard yet.
#[derive(Debug, Default)]
pub(super) struct Hints {
    next: u64,
    handles: BTreeMap<HandleId, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    hints: VecDeque<Hint>,
    wakers: Vec<Waker>,
}

impl Hints {
    /// A new handle.
    pub(super) fn join(&mut self) -> HandleId {
        let id = HandleId(self.next);
        self.next += 1;
        self.handles.insert(id, Waiting::default());
        id
    }

    /// A handle is gone.
    pub(super) fn leave(&mut self, id: HandleId) {
        self.handles.remove(&id);
    }

    /// Someone changed a record: all others are told.
    pub(super) fn tell(&mut self, by: HandleId, hint: &Hint) {
        for (_, waiting) in self.handles.iter_mut().filter(|(id, _)| **id != by) {
            if waiting.hints.len() == WAITING_MAX {
                waiting.hints.pop_front();
            }
            waiting.hints.push_back(hint.clone());
        }
    }

    /// Those who wait and have something to hear now.
    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        let told = self.handles.values_mut().filter(|waiting| !waiting.hints.is_empty());
        told.flat_map(|waiting| std::mem::take(&mut waiting.wakers)).collect()
    }

    /// What a handle has not heard yet; it is woken when there is something.
    pub(super) fn poll(&mut self, id: HandleId, waker: &Waker) -> Poll<Vec<Hint>> {
        let waiting = self.handles.entry(id).or_default();
        if waiting.hints.is_empty() {
            if !waiting.wakers.iter().any(|known| known.will_wake(waker)) {
                waiting.wakers.push(waker.clone());
            }
            return Poll::Pending;
        }
        Poll::Ready(waiting.hints.drain(..).collect())
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::JobId;
    use cronhold_core::record::Key;

    use super::*;

    fn key(number: usize) -> Key {
        Key::Job(JobId::parse(&format!("j{number}")).expect("a name"))
    }

    fn heard(hints: &mut Hints, id: HandleId) -> Option<Vec<Key>> {
        match hints.poll(id, Waker::noop()) {
            Poll::Ready(hints) => Some(hints.into_iter().map(|hint| hint.key).collect()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn others_are_told_and_oneself_is_not() {
        let mut hints = Hints::default();
        let [a, b, c] = [hints.join(), hints.join(), hints.join()];
        hints.leave(c);
        hints.tell(a, &Hint::new(key(1)));
        hints.tell(b, &Hint::new(key(2)));
        assert_eq!(heard(&mut hints, a), Some(vec![key(2)]));
        assert_eq!(heard(&mut hints, b), Some(vec![key(1)]));
        assert_eq!(heard(&mut hints, a), None);
    }

    #[test]
    fn the_oldest_are_lost() {
        let mut hints = Hints::default();
        let [a, b] = [hints.join(), hints.join()];
        (0..WAITING_MAX + 2).for_each(|number| hints.tell(a, &Hint::new(key(number))));
        let heard = heard(&mut hints, b).expect("there is something to hear");
        assert_eq!((heard.len(), &heard[0]), (WAITING_MAX, &key(2)));
    }

    #[test]
    fn only_those_with_something_to_hear_are_woken() {
        let mut hints = Hints::default();
        let [a, b] = [hints.join(), hints.join()];
        for _ in 0..3 {
            // A waker that is known already is kept once.
            assert_eq!((heard(&mut hints, a), heard(&mut hints, b)), (None, None));
        }
        hints.tell(a, &Hint::new(key(1)));
        assert_eq!((hints.take_wakers().len(), hints.take_wakers().len()), (1, 0));
    }
}
