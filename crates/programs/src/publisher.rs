//! Delivers the action `publish`: one commit of the task store carries out many messages. Each has the id of its action as
//! its key, so a message that is sent again does not reach a port twice.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use cronhold_core::command::DeliveryResult;
use cronhold_core::policy::delivery::QUEUE_WAIT;
use cronhold_core::record::{ActionRecord, ResolvedAction};
use cronhold_core::task::{TaskAct, TaskUnit};
use cronhold_engine::MachineClock;
use cronhold_keeper::fail;
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;
use cronhold_store::tasks::TaskStore;
use tokio::sync::Notify;

use crate::delivery::DeliveryReport;

/// Messages of one commit. Further ones wait for the next.
const BATCH_MAX: usize = 256;

/// Publishes messages on a store of tasks.
#[derive(Debug)]
pub(crate) struct MessagePublisher {
    /// `None` if the store does not keep tasks.
    tasks: Option<Arc<dyn TaskStore>>,
    clock: Arc<dyn MachineClock>,
    queue: Mutex<VecDeque<QueuedMessage>>,
    wakeup: Notify,
}

/// An attempt that waits for a commit.
#[derive(Debug)]
struct QueuedMessage {
    action: Arc<ActionRecord>,
    /// The uptime after which another node may make the attempt.
    begin_by: Span,
}

impl MessagePublisher {
    pub(crate) fn new(tasks: Option<Arc<dyn TaskStore>>, clock: Arc<dyn MachineClock>) -> Self {
        Self { tasks, clock, queue: Mutex::default(), wakeup: Notify::new() }
    }

    /// Queues an attempt.
    pub(crate) fn submit(&self, action: Arc<ActionRecord>) {
        let begin_by = self.clock.uptime().plus(QUEUE_WAIT);
        lock_mutex(&self.queue).push_back(QueuedMessage { action, begin_by });
        self.wakeup.notify_one();
    }

    /// Publishes the next messages, and returns the results of their attempts. Waits while there are none.
    pub(crate) async fn publish_next(&self) -> Vec<DeliveryReport> {
        let batch = loop {
            let batch: Vec<QueuedMessage> = {
                let mut queue = lock_mutex(&self.queue);
                let count = queue.len().min(BATCH_MAX);
                queue.drain(..count).collect()
            };
            if !batch.is_empty() {
                break batch;
            }
            self.wakeup.notified().await;
        };
        let uptime = self.clock.uptime();
        let (timely, late): (Vec<_>, Vec<_>) = batch.into_iter().partition(|queued| uptime <= queued.begin_by);
        let late = late.into_iter().map(|queued| failed(&queued.action, "this node was busy with other messages"));
        let mut reports: Vec<DeliveryReport> = late.collect();
        let actions: Vec<Arc<ActionRecord>> = timely.into_iter().map(|queued| queued.action).collect();
        reports.extend(self.publish(&actions).await);
        reports
    }

    async fn publish(&self, actions: &[Arc<ActionRecord>]) -> Vec<DeliveryReport> {
        let Some(tasks) = &self.tasks else {
            return actions.iter().map(|action| failed(action, cronhold_core::job::STORE_WITHOUT_TASKS)).collect();
        };
        let units: Vec<TaskUnit> = actions.iter().filter_map(|action| unit(action)).collect();
        if units.is_empty() {
            return Vec::new();
        }
        fail::point("daemon-before-publish");
        let results = tasks.commit(units).await;
        fail::point("daemon-after-publish");
        let report = |(action, result): (&Arc<ActionRecord>, Result<_, cronhold_store::tasks::TaskUnitError>)| {
            let result = match result {
                Ok(_) => DeliveryResult::Delivered,
                Err(error) => DeliveryResult::Failed(error.to_string()),
            };
            DeliveryReport { action: action.id, attempt: action.attempts, result }
        };
        actions.iter().filter(|action| unit(action).is_some()).zip(results).map(report).collect()
    }
}

/// The request that publishes the message of an action; `None` if the action has none.
fn unit(action: &ActionRecord) -> Option<TaskUnit> {
    let ResolvedAction::Publish { channel, message } = &action.work else { return None };
    let publish = TaskAct::Publish { channel: channel.clone(), message: message.clone() };
    Some(TaskUnit::request(vec![publish]).once(&format!("action {}", action.id)))
}

fn failed(action: &ActionRecord, why: &str) -> DeliveryReport {
    let result = DeliveryResult::Failed(why.to_owned());
    DeliveryReport { action: action.id, attempt: action.attempts, result }
}
