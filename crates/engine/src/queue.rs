//! A bounded queue with many senders and one receiver that takes many items at a time. It needs no executor: whoever
//! waits leaves a waker.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A bounded queue. Clones share it.
pub struct Queue<T> {
    inner: Arc<Mutex<Inner<T>>>,
    most: usize,
}

struct Inner<T> {
    items: VecDeque<T>,
    receiver: Option<Waker>,
    senders: VecDeque<Waker>,
}

impl<T> Queue<T> {
    /// A queue that holds so many items.
    pub fn new(most: usize) -> Self {
        let inner = Inner { items: VecDeque::new(), receiver: None, senders: VecDeque::new() };
        Self { inner: Arc::new(Mutex::new(inner)), most }
    }

    /// Puts in an item if there is room, else gives it back.
    pub fn offer(&self, item: T) -> Result<(), T> {
        let mut inner = self.lock();
        if inner.items.len() >= self.most {
            return Err(item);
        }
        inner.items.push_back(item);
        if let Some(receiver) = inner.receiver.take() {
            drop(inner);
            receiver.wake();
        }
        Ok(())
    }

    /// Puts in an item as soon as there is room.
    pub async fn send(&self, item: T) {
        let mut item = Some(item);
        poll_fn(|context| self.poll_send(&mut item, context)).await;
    }

    /// Waits until there is an item.
    pub async fn ready(&self) {
        poll_fn(|context| {
            let mut inner = self.lock();
            if !inner.items.is_empty() {
                return Poll::Ready(());
            }
            inner.receiver = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Takes out up to so many items.
    pub fn take(&self, most: usize) -> Vec<T> {
        let mut inner = self.lock();
        let count = inner.items.len().min(most);
        let items: Vec<T> = inner.items.drain(..count).collect();
        let senders: Vec<Waker> = if count > 0 { inner.senders.drain(..).collect() } else { Vec::new() };
        drop(inner);
        senders.into_iter().for_each(Waker::wake);
        items
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn poll_send(&self, item: &mut Option<T>, context: &Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.items.len() >= self.most {
            inner.senders.push_back(context.waker().clone());
            return Poll::Pending;
        }
        inner.items.extend(item.take());
        if let Some(receiver) = inner.receiver.take() {
            drop(inner);
            receiver.wake();
        }
        Poll::Ready(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // Nothing in here can panic half way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), most: self.most }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({} of {})", self.len(), self.most)
    }
}
