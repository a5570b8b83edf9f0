//! Where an answer arrives, whoever sent it and whether or not somebody still waits for it.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// A place for one answer.
#[derive(Debug)]
pub(crate) struct ReplyBox<T>(Mutex<ReplyBoxState<T>>);

#[derive(Debug)]
struct ReplyBoxState<T> {
    answer: Option<T>,
    waker: Option<Waker>,
}

impl<T> Default for ReplyBox<T> {
    fn default() -> Self {
        Self(Mutex::new(ReplyBoxState { answer: None, waker: None }))
    }
}

impl<T> ReplyBox<T> {
    /// The answer arrives.
    pub(crate) fn put(&self, answer: T) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.answer = Some(answer);
        let waker = inner.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits for it.
    pub(crate) async fn take(&self) -> T {
        poll_fn(|context| {
            let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match inner.answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => {
                    inner.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
