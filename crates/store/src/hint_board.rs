//! Delivers change notifications between the handles of one store in this process: a bounded queue for each handle. A
//! handle that does not poll loses its oldest hints, which the contract of [`crate::Store::hints`] allows.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::task::{Poll, Waker};

use crate::Hint;
use crate::lock::lock_mutex;

/// Hints that are kept for one handle: those of a burst in which other nodes claim ten thousand jobs while this one
/// commits a batch. A node that loses them claims what was claimed already.
const QUEUED_MAX: usize = 65_536;

/// Identifies a handle among those of its board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HandleId(u64);

/// The undelivered hints of every handle.
#[derive(Debug, Default)]
pub struct HintBoard(Mutex<BoardState>);

#[derive(Debug, Default)]
struct BoardState {
    first: u64,
    next: u64,
    queues: BTreeMap<HandleId, HintQueue>,
}

#[derive(Debug, Default)]
struct HintQueue {
    hints: VecDeque<Hint>,
    wakers: Vec<Waker>,
}

impl HandleId {
    /// A handle of another process, as a message names it.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The number that identifies the handle in messages.
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

impl HintBoard {
    /// A board whose handles are numbered from `first`. Stores with several processes choose it at random, so that
    /// their handles differ.
    pub fn starting_at(first: u64) -> Self {
        Self(Mutex::new(BoardState { first, next: first, queues: BTreeMap::new() }))
    }

    /// Adds a handle.
    pub fn join(&self) -> HandleId {
        let mut state = self.lock();
        let id = HandleId(state.next);
        state.next = state.next.wrapping_add(1);
        state.queues.insert(id, HintQueue::default());
        id
    }

    /// Removes a handle.
    pub fn leave(&self, id: HandleId) {
        self.lock().queues.remove(&id);
    }

    /// Whether the board ever gave out this id.
    pub fn has_issued(&self, id: HandleId) -> bool {
        let state = self.lock();
        // Ids are consecutive and may wrap around.
        id.0.wrapping_sub(state.first) < state.next.wrapping_sub(state.first)
    }

    /// Whether a hint by this handle would reach any other.
    pub fn has_others(&self, by: HandleId) -> bool {
        let state = self.lock();
        state.queues.len() > usize::from(state.queues.contains_key(&by))
    }

    /// Queues hints for all handles except the one that made the changes, and wakes those that wait.
    pub fn publish(&self, by: HandleId, hints: &[Hint]) {
        let mut wakers = Vec::new();
        let mut state = self.lock();
        for (_, queue) in state.queues.iter_mut().filter(|(id, _)| **id != by) {
            queue.hints.extend(hints.iter().cloned());
            let surplus = queue.hints.len().saturating_sub(QUEUED_MAX);
            queue.hints.drain(..surplus);
            if !queue.hints.is_empty() {
                wakers.append(&mut queue.wakers);
            }
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes the hints of a handle. While there are none, the waker is called when some arrive.
    pub fn poll(&self, id: HandleId, waker: &Waker) -> Poll<Vec<Hint>> {
        let mut state = self.lock();
        let queue = state.queues.entry(id).or_default();
        if queue.hints.is_empty() {
            if !queue.wakers.iter().any(|known| known.will_wake(waker)) {
                queue.wakers.push(waker.clone());
            }
            return Poll::Pending;
        }
        Poll::Ready(queue.hints.drain(..).collect())
    }

    fn lock(&self) -> MutexGuard<'_, BoardState> {
        lock_mutex(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use cronhold_core::JobId;
    use cronhold_core::record::RecordKey;

    use super::*;

    #[derive(Default)]
    struct CountingWaker(AtomicUsize);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn hint(number: usize) -> Hint {
        Hint::new(RecordKey::Job(JobId::parse(&format!("j{number}")).expect("a valid id")))
    }

    fn take(board: &HintBoard, id: HandleId) -> Vec<Hint> {
        match board.poll(id, Waker::noop()) {
            Poll::Ready(hints) => hints,
            Poll::Pending => Vec::new(),
        }
    }

    #[test]
    fn hints_reach_all_handles_but_the_sender() {
        let board = HintBoard::default();
        let [a, b, c] = [board.join(), board.join(), board.join()];
        board.leave(c);
        board.publish(a, &[hint(1), hint(2)]);
        board.publish(b, &[hint(3)]);
        assert_eq!(take(&board, a), [hint(3)]);
        assert_eq!(take(&board, b), [hint(1), hint(2)]);
        assert_eq!(take(&board, a), []);
    }

    #[test]
    fn full_queue_drops_the_oldest_hints() {
        let board = HintBoard::default();
        let [a, b] = [board.join(), board.join()];
        let many: Vec<Hint> = (0..QUEUED_MAX + 2).map(hint).collect();
        board.publish(a, &many);
        let kept = take(&board, b);
        assert_eq!((kept.len(), &kept[0]), (QUEUED_MAX, &hint(2)));
        board.publish(a, &[hint(7)]);
        many.iter().for_each(|hint| board.publish(a, std::slice::from_ref(hint)));
        assert_eq!(take(&board, b)[0], hint(2));
    }

    #[test]
    fn only_handles_with_new_hints_are_woken_and_each_waker_once() {
        let board = HintBoard::default();
        let [a, b] = [board.join(), board.join()];
        let counters = [Arc::new(CountingWaker::default()), Arc::new(CountingWaker::default())];
        let [waker_a, waker_b] = counters.clone().map(Waker::from);
        for _ in 0..3 {
            assert!(board.poll(a, &waker_a).is_pending() && board.poll(b, &waker_b).is_pending());
        }
        board.publish(a, &[hint(1)]);
        board.publish(a, &[hint(2)]);
        assert_eq!(counters.map(|counter| counter.0.load(Ordering::Relaxed)), [0, 1]);
    }

    #[test]
    fn sender_is_not_an_other_and_foreign_ids_were_not_issued() {
        let board = HintBoard::starting_at(u64::MAX);
        let a = board.join();
        assert!(!board.has_others(a) && board.has_others(HandleId::from_bits(7)));
        let b = board.join();
        assert!(board.has_others(a) && board.has_others(b));
        assert_eq!((a.to_bits(), b.to_bits()), (u64::MAX, 0));
        let issued = [a, b, HandleId::from_bits(1), HandleId::from_bits(u64::MAX - 1)].map(|id| board.has_issued(id));
        assert_eq!(issued, [true, true, false, false]);
    }
}
