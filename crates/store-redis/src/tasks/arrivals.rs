//! Wakes those who wait for arrivals. Processes report arrivals to each other on a channel; entries that other clients
//! push are found by reading the queues that a worker waits for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use cronhold_core::task::QueueName;
use cronhold_store::lock_mutex;
use cronhold_store::tasks::{TaskBoard, TaskEffects};
use redis::Value;
use tokio::time::sleep;

use super::keys::queue_rest;
use super::scripts::TaskScripts;
use crate::connections::ChannelEvent;

/// How often the queues that a worker waits for are read.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Queues that are looked at.
const WATCHED_QUEUES_MAX: usize = 10_000;

/// Watches queues for a board.
#[derive(Debug)]
pub(super) struct ArrivalWatcher {
    scripts: Arc<TaskScripts>,
    board: Arc<TaskBoard>,
    /// Names this process in its own reports, which the board has already.
    token: String,
    is_running: AtomicBool,
    /// Queues, with the length and the newest entry that were seen.
    watched: Mutex<BTreeMap<QueueName, Vec<Value>>>,
}

impl ArrivalWatcher {
    pub(super) fn new(scripts: Arc<TaskScripts>, board: Arc<TaskBoard>, token: String) -> Self {
        Self { scripts, board, token, is_running: AtomicBool::new(false), watched: Mutex::default() }
    }

    /// Watches a queue from now on.
    pub(super) fn watch(self: &Arc<Self>, queue: &QueueName, runtime: &tokio::runtime::Handle) {
        let mut watched = lock_mutex(&self.watched);
        if !watched.contains_key(queue) && watched.len() < WATCHED_QUEUES_MAX {
            watched.insert(queue.clone(), Vec::new());
        }
        drop(watched);
        if !self.is_running.swap(true, Ordering::Relaxed) {
            runtime.spawn(receive_reports(Arc::downgrade(self)));
            runtime.spawn(look_at_queues(Arc::downgrade(self)));
        }
    }

    fn notify(&self, queues: impl IntoIterator<Item = QueueName>) {
        let arrivals = queues.into_iter().collect();
        self.board.publish(TaskEffects { arrivals, messages: Vec::new() });
    }

    fn notify_all(&self) {
        let queues: Vec<QueueName> = lock_mutex(&self.watched).keys().cloned().collect();
        self.notify(queues);
    }

    /// Notifies those who wait for the queues of a report of another process.
    fn receive(&self, report: &[u8]) {
        let Ok(report) = std::str::from_utf8(report) else { return };
        let mut lines = report.lines();
        if lines.next() == Some(self.token.as_str()) {
            return;
        }
        self.notify(lines.filter_map(|queue| QueueName::parse(queue).ok()));
    }

    /// Notifies those who wait for a queue whose newest entry or length has changed.
    async fn look(&self) {
        let queues: Vec<QueueName> = lock_mutex(&self.watched).keys().cloned().collect();
        let mut commands = Vec::with_capacity(2 * queues.len());
        for queue in &queues {
            let key = self.scripts.keys().of(&queue_rest(queue));
            let (mut length, mut newest) = (redis::cmd("LLEN"), redis::cmd("LINDEX"));
            length.arg(&key);
            newest.arg(&key).arg(0);
            commands.extend([length, newest]);
        }
        let Ok(replies) = self.scripts.connections().request(commands).await else { return };
        let mut changed = Vec::new();
        let mut watched = lock_mutex(&self.watched);
        for (queue, found) in queues.into_iter().zip(replies.chunks(2)) {
            let known = watched.get_mut(&queue);
            if let Some(known) = known.filter(|known| known.as_slice() != found) {
                *known = found.to_vec();
                changed.push(queue);
            }
        }
        drop(watched);
        if !changed.is_empty() {
            self.notify(changed);
        }
    }
}

/// Receives reports of other processes until the store is dropped.
async fn receive_reports(watcher: Weak<ArrivalWatcher>) {
    let Some(strong) = watcher.upgrade() else { return };
    let mut events = strong.scripts.connections().subscribe(vec![strong.scripts.keys().arrivals()]);
    drop(strong);
    while let Some(event) = events.recv().await {
        let Some(watcher) = watcher.upgrade() else { return };
        match event {
            ChannelEvent::Message { payload, .. } => watcher.receive(&payload),
            // Reports may have been missed.
            ChannelEvent::Gap => watcher.notify_all(),
        }
    }
}

/// Looks at the queues until the store is dropped.
async fn look_at_queues(watcher: Weak<ArrivalWatcher>) {
    loop {
        sleep(LOOK_INTERVAL).await;
        let Some(watcher) = watcher.upgrade() else { return };
        watcher.look().await;
    }
}
