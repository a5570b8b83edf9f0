//! Hints for other handles on the same store: a bounded queue each. A handle that does not listen loses the oldest
//! ones, which is what hints are allowed to do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use cronhold_core::record::Key;
use cronhold_store::Hint;

/// So many hints wait for one handle.
const WAITING_MAX: usize = 4_096;

/// Tells handles apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HandleId(u64);

/// What every handle has not heard yet.
#[derive(Debug, Default)]
pub(crate) struct Hints(Mutex<Handles>);

#[derive(Debug, Default)]
struct Handles {
    next: u64,
    waiting: BTreeMap<HandleId, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    keys: VecDeque<Key>,
    wakers: Vec<Waker>,
}

impl Hints {
    /// A new handle.
    pub(crate) fn join(&self) -> HandleId {
        let mut handles = self.lock();
        let id = HandleId(handles.next);
        handles.next += 1;
        handles.waiting.insert(id, Waiting::default());
        id
    }

    /// A handle is gone.
    pub(crate) fn leave(&self, id: HandleId) {
        self.lock().waiting.remove(&id);
    }

    /// Whether there is anyone to tell.
    pub(crate) fn has_others(&self) -> bool {
        self.lock().waiting.len() > 1
    }

    /// Someone changed records: all others are told.
    pub(crate) fn tell(&self, by: HandleId, keys: &[Key]) {
        let mut wakers = Vec::new();
        let mut handles = self.lock();
        for (_, waiting) in handles.waiting.iter_mut().filter(|(id, _)| **id != by) {
            waiting.keys.extend(keys.iter().cloned());
            let surplus = waiting.keys.len().saturating_sub(WAITING_MAX);
            waiting.keys.drain(..surplus);
            if !waiting.keys.is_empty() {
                wakers.append(&mut waiting.wakers);
            }
        }
        drop(handles);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// What a handle has not heard yet; it is woken when there is something.
    pub(crate) fn poll(&self, id: HandleId, waker: &Waker) -> Poll<Vec<Hint>> {
        let mut handles = self.lock();
        let waiting = handles.waiting.entry(id).or_default();
        if waiting.keys.is_empty() {
            if !waiting.wakers.iter().any(|known| known.will_wake(waker)) {
                waiting.wakers.push(waker.clone());
            }
            return Poll::Pending;
        }
        Poll::Ready(waiting.keys.drain(..).map(Hint::new).collect())
    }

    fn lock(&self) -> MutexGuard<'_, Handles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::JobId;

    use super::*;

    fn key(number: usize) -> Key {
        Key::Job(JobId::parse(&format!("j{number}")).expect("a name"))
    }

    fn heard(hints: &Hints, id: HandleId) -> Vec<Key> {
        match hints.poll(id, Waker::noop()) {
            Poll::Ready(hints) => hints.into_iter().map(|hint| hint.key).collect(),
            Poll::Pending => Vec::new(),
        }
    }

    #[test]
    fn others_are_told_and_the_oldest_are_lost() {
        let hints = Hints::default();
        let [a, b, c] = [hints.join(), hints.join(), hints.join()];
        assert!(hints.has_others());
        hints.leave(c);
        hints.tell(a, &[key(1), key(2)]);
        assert_eq!((heard(&hints, a), heard(&hints, b)), (vec![], vec![key(1), key(2)]));
        assert_eq!(heard(&hints, b), []);
        let many: Vec<Key> = (0..WAITING_MAX + 3).map(key).collect();
        hints.tell(b, &many);
        let late = heard(&hints, a);
        assert_eq!((late.len(), &late[0]), (WAITING_MAX, &key(3)));
    }
}
