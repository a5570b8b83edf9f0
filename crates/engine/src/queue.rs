//! A bounded queue with many senders and one receiver, which can take many items at a time. It works with any executor.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use cronhold_store::lock_mutex;

/// A bounded queue. Clones share its items.
pub struct BoundedQueue<T> {
    state: Arc<Mutex<QueueState<T>>>,
    capacity: usize,
}

struct QueueState<T> {
    items: VecDeque<T>,
    receiver: Option<Waker>,
    /// Senders that wait for room, each once.
    senders: Vec<Waker>,
}

impl<T> BoundedQueue<T> {
    /// Creates a queue that holds up to `capacity` items.
    pub fn new(capacity: usize) -> Self {
        let state = QueueState { items: VecDeque::new(), receiver: None, senders: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)), capacity }
    }

    /// Adds an item, or returns it if the queue is full.
    pub fn try_send(&self, item: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.items.len() >= self.capacity {
            return Err(item);
        }
        state.items.push_back(item);
        let receiver = state.receiver.take();
        drop(state);
        receiver.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Adds an item. Waits while the queue is full.
    pub async fn send(&self, item: T) {
        let mut item = Some(item);
        poll_fn(|context| self.poll_send(&mut item, context)).await;
    }

    /// Waits until there is an item.
    pub async fn ready(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if !state.items.is_empty() {
                return Poll::Ready(());
            }
            state.receiver = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Waits for an item and takes it out.
    pub async fn receive(&self) -> T {
        loop {
            self.ready().await;
            if let Some(item) = self.take(1).pop() {
                return item;
            }
        }
    }

    /// Takes out up to `most` items.
    pub fn take(&self, most: usize) -> Vec<T> {
        let mut state = self.lock();
        let count = state.items.len().min(most);
        let items: Vec<T> = state.items.drain(..count).collect();
        let senders = if count > 0 { std::mem::take(&mut state.senders) } else { Vec::new() };
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        items
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn poll_send(&self, item: &mut Option<T>, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.items.len() >= self.capacity {
            if !state.senders.iter().any(|sender| sender.will_wake(context.waker())) {
                state.senders.push(context.waker().clone());
            }
            return Poll::Pending;
        }
        state.items.extend(item.take());
        let receiver = state.receiver.take();
        drop(state);
        receiver.into_iter().for_each(Waker::wake);
        Poll::Ready(())
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        lock_mutex(&self.state)
    }
}

impl<T> Clone for BoundedQueue<T> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), capacity: self.capacity }
    }
}

impl<T> fmt::Debug for BoundedQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({} of {})", self.len(), self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct CountingWaker(AtomicUsize);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn sender_polled_often_on_a_full_queue_is_woken_once() {
        let queue = BoundedQueue::new(1);
        queue.try_send(1).expect("room for one");
        let counters = [Arc::new(CountingWaker::default()), Arc::new(CountingWaker::default())];
        let wakers = counters.clone().map(Waker::from);
        let (mut first, mut second) = (pin!(queue.send(2)), pin!(queue.send(3)));
        for _ in 0..100 {
            assert!(first.as_mut().poll(&mut Context::from_waker(&wakers[0])).is_pending());
            assert!(second.as_mut().poll(&mut Context::from_waker(&wakers[1])).is_pending());
        }
        assert_eq!(queue.lock().senders.len(), 2, "each sender waits once");
        assert_eq!(queue.take(9), [1]);
        assert_eq!(counters.each_ref().map(|counter| counter.0.load(Ordering::Relaxed)), [1, 1]);
        assert!(second.as_mut().poll(&mut Context::from_waker(&wakers[1])).is_ready());
        assert!(first.as_mut().poll(&mut Context::from_waker(&wakers[0])).is_pending(), "the queue is full again");
        assert_eq!(queue.take(9), [3]);
        assert!(first.as_mut().poll(&mut Context::from_waker(&wakers[0])).is_ready());
        assert_eq!(queue.take(9), [2]);
    }

    #[test]
    fn receiver_is_woken_by_an_item() {
        let queue = BoundedQueue::new(1);
        let counter = Arc::new(CountingWaker::default());
        let waker = Waker::from(Arc::clone(&counter));
        let mut receiver = pin!(queue.receive());
        assert!(receiver.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        queue.try_send(7).expect("room for one");
        assert_eq!(queue.try_send(8), Err(8));
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
        assert_eq!(receiver.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(7));
    }
}
