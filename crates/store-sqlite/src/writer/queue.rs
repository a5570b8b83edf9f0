//! The bounded queue of the writer thread. When it is full, callers wait until the writer has taken a batch.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::ahead::AheadQueue;
use super::request::WriterRequest;
use cronhold_store::lock_mutex;

/// Units that may be queued. One request may exceed it, so that a large one can be queued at all.
const UNITS_MAX: usize = 16 * 1024;

/// Units of one batch. Larger batches would delay every reply in them.
const BATCH_UNITS_MAX: usize = 4 * 1024;

/// Requests for the writer thread, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct WriterQueue {
    waiting: Mutex<WriterQueueState>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct WriterQueueState {
    requests: VecDeque<WriterRequest>,
    units: usize,
    is_closed: bool,
    /// Callers that wait for room.
    wakers: Vec<Waker>,
}

impl WriterQueue {
    /// Appends a request as soon as there is room. Returns false if the queue is closed.
    pub(crate) async fn push(&self, request: WriterRequest) -> bool {
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
                waiting.units += request.unit_count();
                waiting.requests.push_back(request);
            }
            Poll::Ready(true)
        });
        let is_open = is_open.await;
        self.filled.notify_one();
        is_open
    }

    /// Appends a request that has no reply and takes no room. It is dropped if the queue is closed.
    pub(crate) fn push_now(&self, request: WriterRequest) {
        let mut waiting = self.lock();
        if !waiting.is_closed {
            waiting.requests.push_back(request);
            drop(waiting);
            self.filled.notify_one();
        }
    }

    /// Whether a request waits that has to write something, other than the commit of these units.
    pub(super) fn has_other_writes(&self, units: &Arc<AheadQueue>) -> bool {
        let is_other_write = |request: &WriterRequest| match request {
            WriterRequest::Execute { .. } | WriterRequest::Discard { .. } => false,
            WriterRequest::CommitAhead { ahead, .. } => !Arc::ptr_eq(ahead, units),
            _ => true,
        };
        self.lock().requests.iter().any(is_other_write)
    }

    /// Waits for requests and takes a batch. `None` if the queue is closed and empty.
    pub(crate) fn take_batch(&self) -> Option<Vec<WriterRequest>> {
        let waiting = self.lock();
        let is_idle = |waiting: &mut WriterQueueState| waiting.requests.is_empty() && !waiting.is_closed;
        let mut waiting = self.filled.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner);
        let mut batch = Vec::new();
        let mut units = 0;
        while let Some(next) = waiting.requests.front().map(WriterRequest::unit_count) {
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

    /// Rejects new requests. Queued requests are still executed.
    pub(crate) fn close(&self) {
        let wakers = {
            let mut waiting = self.lock();
            waiting.is_closed = true;
            std::mem::take(&mut waiting.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, WriterQueueState> {
        lock_mutex(&self.waiting)
    }
}
