//! What waits for the writer. It is bounded: whoever comes when it is full waits until the writer has taken some.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::request::Request;

/// So many units may wait. One request may go beyond it, so that a large one does not wait for ever.
const UNITS_MAX: usize = 16 * 1024;

/// The writer takes requests of about so many units at once. More would make each of them late.
const BATCH_UNITS_MAX: usize = 4 * 1024;

/// What waits for the writer.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<Request>,
    units: usize,
    is_closed: bool,
    /// Those who wait for room.
    wakers: Vec<Waker>,
}

impl Queue {
    /// Puts a request at the end, as soon as there is room. Answers whether there is still a writer.
    pub(crate) async fn put(&self, request: Request) -> bool {
        let mut request = Some(request);
        let is_open = poll_fn(|context| {
            let mut waiting = self.lock();
            if waiting.is_closed {
                return Poll::Ready(false);
            }
            if waiting.units >= UNITS_MAX {
                waiting.wakers.push(context.waker().clone());
                return Poll::Pending;
            }
            if let Some(request) = request.take() {
                waiting.units += request.units();
                waiting.requests.push_back(request);
            }
            Poll::Ready(true)
        });
        let is_open = is_open.await;
        self.filled.notify_one();
        is_open
    }

    /// Waits for requests and takes as many as go together. `None` when it is closed and empty.
    pub(crate) fn take(&self) -> Option<Vec<Request>> {
        let waiting = self.lock();
        let is_idle = |waiting: &mut Waiting| waiting.requests.is_empty() && !waiting.is_closed;
        let mut waiting = self.filled.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner);
        let mut batch = Vec::new();
        let mut units = 0;
        while let Some(next) = waiting.requests.front().map(Request::units) {
            if units > 0 && units + next > BATCH_UNITS_MAX {
                break;
            }
            units += next;
            batch.extend(waiting.requests.pop_front());
        }
        waiting.units -= units;
        let wakers = std::mem::take(&mut waiting.wakers);
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
        (!batch.is_empty()).then_some(batch)
    }

    /// Lets nothing more in. What is there is still done.
    pub(crate) fn close(&self) {
        let wakers = {
            let mut waiting = self.lock();
            waiting.is_closed = true;
            std::mem::take(&mut waiting.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
