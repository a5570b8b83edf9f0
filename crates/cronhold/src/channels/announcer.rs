//! Publishes the transitions of runs to listeners of this process, such as `cronhold channel tail`, if no port subscribes
//! to them. It does its best: a message is lost if the daemon is killed, or if too many wait.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use cronhold_core::decide::transition_message;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Record, TransitionKind};
use cronhold_core::task::{TaskAct, TaskUnit};
use cronhold_engine::{EngineEvent, EngineObserver};
use cronhold_store::lock_mutex;
use cronhold_store::tasks::TaskStore;
use tokio::sync::Notify;

use super::subscriptions::FollowedTasks;

/// Messages that wait. If there are more, the oldest are dropped.
const WAITING_MAX: usize = 10_000;
/// Messages of one commit.
const BATCH_MAX: usize = 256;

/// Publishes transitions to listeners.
#[derive(Debug)]
pub(crate) struct RunAnnouncer {
    tasks: Arc<FollowedTasks>,
    waiting: Mutex<VecDeque<TaskAct>>,
    wakeup: Notify,
}

impl RunAnnouncer {
    pub(crate) fn new(tasks: Arc<FollowedTasks>) -> Self {
        Self { tasks, waiting: Mutex::default(), wakeup: Notify::new() }
    }

    /// Publishes until it is dropped.
    pub(crate) async fn run(&self) {
        loop {
            let acts: Vec<TaskAct> = {
                let mut waiting = lock_mutex(&self.waiting);
                let count = waiting.len().min(BATCH_MAX);
                waiting.drain(..count).collect()
            };
            if acts.is_empty() {
                self.wakeup.notified().await;
            } else {
                let units = acts.into_iter().map(|act| TaskUnit::request(vec![act])).collect();
                self.tasks.commit(units).await;
            }
        }
    }
}

impl EngineObserver for RunAnnouncer {
    fn on_event(&self, news: &EngineEvent<'_>) {
        let EngineEvent::Committed { stamp, done } = news else { return };
        if self.tasks.has_no_listeners() {
            return;
        }
        for change in &done.changes {
            let RecordChange::Put(Record::Run(run)) = change else { continue };
            let is_new = |entry: &&_| {
                let entry: &cronhold_core::record::Transition = entry;
                entry.kind == TransitionKind::Entered && entry.at == stamp.at
            };
            for entry in
                run.log.iter().filter(is_new).filter(|entry| self.tasks.is_only_listened(&run.job, entry.state))
            {
                let (channel, message) = transition_message(run, entry);
                let mut waiting = lock_mutex(&self.waiting);
                waiting.push_back(TaskAct::Publish { channel, message });
                if waiting.len() > WAITING_MAX {
                    waiting.pop_front();
                }
                self.wakeup.notify_one();
            }
        }
    }
}
