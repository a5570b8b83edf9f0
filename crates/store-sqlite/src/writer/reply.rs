//! A one-shot reply from the writer thread to a task, without a runtime. It wakes the task that polled last.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cronhold_store::lock_mutex;

/// The side that replies. Dropping it without a reply ends the wait of the receiver.
#[derive(Debug)]
pub(crate) struct ReplySender<T>(Arc<Mutex<ReplySlot<T>>>);

/// The side that waits. It yields `None` if the sender was dropped without a reply.
#[derive(Debug)]
pub(crate) struct ReplyReceiver<T>(Arc<Mutex<ReplySlot<T>>>);

#[derive(Debug)]
struct ReplySlot<T> {
    value: Option<T>,
    is_closed: bool,
    waker: Option<Waker>,
}

/// Both sides of a reply.
pub(crate) fn reply_channel<T>() -> (ReplySender<T>, ReplyReceiver<T>) {
    let slot = Arc::new(Mutex::new(ReplySlot { value: None, is_closed: false, waker: None }));
    (ReplySender(Arc::clone(&slot)), ReplyReceiver(slot))
}

impl<T> ReplySender<T> {
    pub(crate) fn send(self, value: T) {
        lock_mutex(&self.0).value = Some(value);
    }
}

impl<T> Drop for ReplySender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut slot = lock_mutex(&self.0);
            slot.is_closed = true;
            slot.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<T> Future for ReplyReceiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = lock_mutex(&self.0);
        if slot.is_closed {
            return Poll::Ready(slot.value.take());
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn receiver_gets_the_value_or_none_if_the_sender_is_dropped() {
        let mut context = Context::from_waker(Waker::noop());
        let (sender, receiver) = reply_channel();
        let mut receiver = pin!(receiver);
        assert_eq!(receiver.as_mut().poll(&mut context), Poll::Pending);
        sender.send(7);
        assert_eq!(receiver.as_mut().poll(&mut context), Poll::Ready(Some(7)));

        let (sender, receiver) = reply_channel::<u32>();
        drop(sender);
        assert_eq!(pin!(receiver).poll(&mut context), Poll::Ready(None));
    }
}
