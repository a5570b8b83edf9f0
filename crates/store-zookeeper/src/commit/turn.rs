//! The order of commits: a commit takes its turn when it is requested, and begins when all before it have ended. The tasks
//! of a runtime may begin in another order than they were started, and units may build on those of earlier commits.

use std::sync::Mutex;

use cronhold_store::lock_mutex;
use tokio::sync::oneshot;

/// Gives out turns.
#[derive(Debug, Default)]
pub(crate) struct TurnQueue(Mutex<Option<oneshot::Receiver<()>>>);

/// The turn of a commit. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct CommitTurn {
    /// Ends with the turn before; `None` for the first one.
    before: Option<oneshot::Receiver<()>>,
    /// Dropped at the end, which the next turn waits for.
    _end: oneshot::Sender<()>,
}

impl TurnQueue {
    /// The turn after all that were taken before.
    pub(crate) fn take(&self) -> CommitTurn {
        let (end, next) = oneshot::channel();
        CommitTurn { before: lock_mutex(&self.0).replace(next), _end: end }
    }
}

impl CommitTurn {
    /// Waits until all earlier turns have ended.
    pub(crate) async fn begin(&mut self) {
        if let Some(before) = self.before.take() {
            // The sender is only dropped.
            let _ = before.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn turns_begin_in_the_order_in_which_they_were_taken() {
        let queue = TurnQueue::default();
        let (mut first, mut second, mut third) = (queue.take(), queue.take(), queue.take());
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(first.begin()).poll(&mut context).is_ready());
        {
            let mut begin = pin!(third.begin());
            assert!(begin.as_mut().poll(&mut context).is_pending());
            drop(first);
            assert!(begin.as_mut().poll(&mut context).is_pending());
            assert!(pin!(second.begin()).poll(&mut context).is_ready());
            drop(second);
            assert!(begin.as_mut().poll(&mut context).is_ready());
        }
    }
}
