//! The threads that deliver actions.

use std::fmt;
use std::sync::Arc;

use cronhold_core::command::DeliveryResult;
use cronhold_core::policy::delivery::QUEUE_WAIT;
use cronhold_core::record::ActionRecord;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;

use super::{DeliveryReport, Sender};
use crate::worker_pool::{PoolLimits, WorkerPool};

/// Threads in all, and attempts to one receiver at a time.
const LIMITS: PoolLimits = PoolLimits { threads: 32, per_group: 4 };

/// Receives the results of attempts.
pub(crate) type ReportFn = Arc<dyn Fn(DeliveryReport) + Send + Sync>;

/// Delivers actions on threads of its own.
#[derive(Clone)]
pub(crate) struct DeliveryPool {
    sender: Arc<Sender>,
    clock: Arc<dyn MachineClock>,
    workers: WorkerPool<QueuedAttempt>,
}

struct QueuedAttempt {
    action: Arc<ActionRecord>,
    /// The uptime after which another node may make the attempt.
    begin_by: Span,
}

impl DeliveryPool {
    pub(crate) fn new(sender: Sender, clock: Arc<dyn MachineClock>, report: ReportFn) -> Self {
        let sender = Arc::new(sender);
        let (work_sender, work_clock) = (Arc::clone(&sender), Arc::clone(&clock));
        let work = move |QueuedAttempt { action, begin_by }: QueuedAttempt| {
            let result = if work_clock.uptime() > begin_by {
                DeliveryResult::Failed("this node was busy with other deliveries".to_owned())
            } else {
                work_sender.send(&action)
            };
            report(DeliveryReport { action: action.id, attempt: action.attempts, result });
        };
        Self { sender, clock, workers: WorkerPool::new("delivery", LIMITS, Box::new(work)) }
    }

    /// Queues an attempt. If no thread can be started for it, its lease ends.
    pub(crate) fn submit(&self, action: Arc<ActionRecord>) {
        let receiver = self.sender.receiver(&action);
        let begin_by = self.clock.uptime().plus(QUEUE_WAIT);
        self.workers.submit(receiver, QueuedAttempt { action, begin_by });
    }
}

impl fmt::Debug for DeliveryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeliveryPool({:?})", self.workers)
    }
}
