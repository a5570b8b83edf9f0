//! A slot for one reply. The sender may fill it after the caller has stopped waiting.

use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Poll, Waker};

use cronhold_store::lock_mutex;

#[derive(Debug)]
pub(crate) struct ReplyBox<T>(Mutex<ReplyBoxState<T>>);

#[derive(Debug)]
struct ReplyBoxState<T> {
    reply: Option<T>,
    waker: Option<Waker>,
}

impl<T> Default for ReplyBox<T> {
    fn default() -> Self {
        Self(Mutex::new(ReplyBoxState { reply: None, waker: None }))
    }
}

impl<T> ReplyBox<T> {
    /// Fills the slot and wakes the caller.
    pub(crate) fn put(&self, reply: T) {
        let mut inner = lock_mutex(&self.0);
        inner.reply = Some(reply);
        let waker = inner.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits for the reply.
    pub(crate) async fn take(&self) -> T {
        poll_fn(|context| {
            let mut inner = lock_mutex(&self.0);
            match inner.reply.take() {
                Some(reply) => Poll::Ready(reply),
                None => {
                    inner.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
