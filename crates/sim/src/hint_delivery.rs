//! Hints in transit from the store to a node. They are delayed, and some are lost, late or duplicated, which a node
//! must tolerate.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;

use cronhold_schedule::Span;
use cronhold_store::lock_mutex;
use cronhold_store::{Hint, Store};

use crate::time::{SimAlarm, SimTime};

/// Maximum number of batches in transit; more are lost.
const BATCHES_MAX: usize = 10_000;

/// The hints in transit to one daemon process.
#[derive(Debug, Default)]
pub(crate) struct HintDelivery(Mutex<HintsInTransit>);

/// The fate of hints that are sent together.
#[derive(Debug)]
pub(crate) struct HintBatch {
    /// Indices of the hints that are lost, in ascending order.
    pub(crate) lost: Vec<usize>,
    /// Delay of each copy of the others.
    pub(crate) delays: Vec<Span>,
}

#[derive(Debug, Default)]
struct HintsInTransit {
    /// Batches by arrival time. The number makes keys unique.
    batches: BTreeMap<(Span, u64), Vec<Hint>>,
    count: u64,
}

impl HintDelivery {
    /// Waits until hints arrive. `fate` decides what becomes of a batch of a given size.
    pub(crate) async fn hints(
        &self,
        store: &dyn Store,
        time: &SimTime,
        fate: impl Fn(usize) -> HintBatch,
    ) -> Vec<Hint> {
        let mut sent = store.hints();
        let mut alarm = None;
        poll_fn(|context| {
            while let Poll::Ready(hints) = sent.as_mut().poll(context) {
                sent = store.hints();
                let HintBatch { lost, mut delays } = fate(hints.len());
                let mut hints = hints;
                lost.into_iter().rev().for_each(|place| drop(hints.remove(place)));
                let Some(last) = delays.pop().filter(|_| !hints.is_empty()) else { continue };
                let (now, mut inner) = (time.now(), self.lock());
                delays.into_iter().for_each(|delay| inner.add(now.plus(delay), hints.clone()));
                inner.add(now.plus(last), hints);
            }
            let mut inner = self.lock();
            let mut arrived = Vec::new();
            while let Some(batch) = inner.batches.first_entry().filter(|batch| batch.key().0 <= time.now()) {
                arrived.extend(batch.remove());
            }
            if !arrived.is_empty() {
                return Poll::Ready(arrived);
            }
            let next = inner.batches.first_key_value().map(|((at, _), _)| *at);
            alarm = next.map(|at| SimAlarm::new(time, at, context.waker()));
            Poll::Pending
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, HintsInTransit> {
        lock_mutex(&self.0)
    }
}

impl HintsInTransit {
    fn add(&mut self, at: Span, hints: Vec<Hint>) {
        if self.batches.len() < BATCHES_MAX {
            self.count += 1;
            self.batches.insert((at, self.count), hints);
        }
    }
}
