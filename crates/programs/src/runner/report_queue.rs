//! Results that wait until the node takes them. It is a queue of its own, because threads put them in, and a task of the
//! runner takes them out.

use std::collections::VecDeque;
use std::sync::Mutex;

use cronhold_store::lock_mutex;
use tokio::sync::Notify;

/// Results of deliveries or checks that the node has not got yet.
#[derive(Debug)]
pub(super) struct ReportQueue<T> {
    queue: Mutex<VecDeque<T>>,
    wakeup: Notify,
}

impl<T> ReportQueue<T> {
    pub(super) fn push(&self, report: T) {
        lock_mutex(&self.queue).push_back(report);
        self.wakeup.notify_one();
    }

    pub(super) async fn next(&self) -> T {
        loop {
            let next = lock_mutex(&self.queue).pop_front();
            match next {
                Some(report) => return report,
                None => self.wakeup.notified().await,
            }
        }
    }
}

impl<T> Default for ReportQueue<T> {
    fn default() -> Self {
        Self { queue: Mutex::default(), wakeup: Notify::new() }
    }
}
