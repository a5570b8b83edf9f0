//! Hints on their way from the store to a node. They take their time, and some of them get lost, come late or come
//! twice: a node has to live with that.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use cronhold_schedule::Span;
use cronhold_store::{Hint, Store};

use crate::time::{SimAlarm, SimTime};

/// Parcels of hints that are on their way; what comes when there are more is lost.
const PARCELS_MAX: usize = 10_000;

/// What is on its way to one life of a daemon.
#[derive(Debug, Default)]
pub(crate) struct HintDelivery(Mutex<HintsInTransit>);

/// What becomes of hints that are sent together.
#[derive(Debug)]
pub(crate) struct HintBatch {
    /// Places of those that get lost, the first ones first.
    pub(crate) lost: Vec<usize>,
    /// How long each copy of the others takes.
    pub(crate) delays: Vec<Span>,
}

#[derive(Debug, Default)]
struct HintsInTransit {
    /// Parcels by when they arrive; the number tells those apart that do at one moment.
    parcels: BTreeMap<(Span, u64), Vec<Hint>>,
    count: u64,
}

impl HintDelivery {
    /// Waits until hints have arrived. What becomes of so many that are sent together is asked then.
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
            while let Some(parcel) = inner.parcels.first_entry().filter(|parcel| parcel.key().0 <= time.now()) {
                arrived.extend(parcel.remove());
            }
            if !arrived.is_empty() {
                return Poll::Ready(arrived);
            }
            let next = inner.parcels.first_key_value().map(|((at, _), _)| *at);
            alarm = next.map(|at| SimAlarm::new(time, at, context.waker()));
            Poll::Pending
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, HintsInTransit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HintsInTransit {
    fn add(&mut self, at: Span, hints: Vec<Hint>) {
        if self.parcels.len() < PARCELS_MAX {
            self.count += 1;
            self.parcels.insert((at, self.count), hints);
        }
    }
}
