//! An answer that one thread gives and another waits for, without a runtime: it wakes whoever polled last.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The side that answers.
#[derive(Debug)]
pub(crate) struct Answer<T>(Arc<Mutex<Slot<T>>>);

/// The side that waits. `None` says that nobody will ever answer.
#[derive(Debug)]
pub(crate) struct Reply<T>(Arc<Mutex<Slot<T>>>);

#[derive(Debug)]
struct Slot<T> {
    value: Option<T>,
    is_over: bool,
    waker: Option<Waker>,
}

/// Both sides of an answer.
pub(crate) fn reply<T>() -> (Answer<T>, Reply<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, is_over: false, waker: None }));
    (Answer(Arc::clone(&slot)), Reply(slot))
}

impl<T> Answer<T> {
    /// Gives the answer.
    pub(crate) fn give(self, value: T) {
        lock(&self.0).value = Some(value);
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        let waker = {
            let mut slot = lock(&self.0);
            slot.is_over = true;
            slot.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<T> Future for Reply<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = lock(&self.0);
        if slot.is_over {
            return Poll::Ready(slot.value.take());
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

fn lock<T>(slot: &Mutex<Slot<T>>) -> MutexGuard<'_, Slot<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn gives_the_answer_or_says_that_there_is_none() {
        let mut context = Context::from_waker(Waker::noop());
        let (answer, reply) = reply();
        let mut reply = pin!(reply);
        assert_eq!(reply.as_mut().poll(&mut context), Poll::Pending);
        answer.give(7);
        assert_eq!(reply.as_mut().poll(&mut context), Poll::Ready(Some(7)));

        let (answer, reply) = super::reply::<u32>();
        drop(answer);
        assert_eq!(pin!(reply).poll(&mut context), Poll::Ready(None));
    }
}
