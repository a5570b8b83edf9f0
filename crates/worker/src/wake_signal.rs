//! A signal that threads of a runtime wait for: a future can make progress, a step has ended, or the runtime stops.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Wake;

use cronhold_schedule::Span;
use cronhold_store::lock_mutex;

/// A flag that is set by a notification, and cleared by the thread that waits for it.
#[derive(Debug, Default)]
pub(crate) struct WakeSignal {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl WakeSignal {
    pub(crate) fn notify(&self) {
        *lock_mutex(&self.is_set) = true;
        self.changed.notify_all();
    }

    /// Waits for a notification, at most this long if a span is given.
    pub(crate) fn wait(&self, most: Option<Span>) {
        let is_set = lock_mutex(&self.is_set);
        let is_clear = |is_set: &mut bool| !*is_set;
        let mut is_set = match most {
            None => self.changed.wait_while(is_set, is_clear).unwrap_or_else(PoisonError::into_inner),
            Some(most) => {
                let most = std::time::Duration::from_micros(most.micros());
                let waited = self.changed.wait_timeout_while(is_set, most, is_clear);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        *is_set = false;
    }
}

impl Wake for WakeSignal {
    fn wake(self: Arc<Self>) {
        self.notify();
    }
}
