//! Keeps a task for each job with `triggers`: it follows the changes of jobs, and compares all tasks with their jobs from
//! time to time, because another node may have been killed between the change of a job and that of its task.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use cronhold_core::JobId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Record, RecordKey};
use cronhold_engine::{EngineEvent, EngineObserver, MachineClock};
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;
use cronhold_store::tasks::TaskUnitError;
use tokio::sync::Notify;
use tracing::warn;

use super::RETRY_WAIT;
use super::trigger_tasks::TriggerTasks;
use super::trigger_worker::TriggerWorker;

/// How often all tasks are compared with their jobs.
const COMPARE_EVERY: Span = Span::from_secs(60);

/// Keeps the tasks, and lets this node make their steps.
#[derive(Debug)]
pub(super) struct TriggerKeeper {
    jobs: TriggerTasks,
    worker: TriggerWorker,
    changed: Arc<ChangedTriggers>,
    clock: Arc<dyn MachineClock>,
    /// Whether the class of the tasks is registered.
    is_registered: Cell<bool>,
    registered: Notify,
}

/// Jobs whose triggers may have changed.
#[derive(Debug, Default)]
pub(crate) struct ChangedTriggers {
    state: Mutex<ChangedState>,
    wakeup: Notify,
}

#[derive(Debug, Default)]
struct ChangedState {
    /// Jobs to look at, in the order of their changes.
    queue: VecDeque<JobId>,
    /// The same jobs.
    queued: BTreeSet<JobId>,
    /// Jobs that have a task.
    known: BTreeSet<JobId>,
}

impl ChangedTriggers {
    fn add(&self, job: &JobId) {
        let mut state = lock_mutex(&self.state);
        if state.queued.insert(job.clone()) {
            state.queue.push_back(job.clone());
            self.wakeup.notify_one();
        }
    }

    /// Notes whether a job has a task. If not, further changes of the job matter only if it has triggers then.
    fn set_known(&self, job: &JobId, has_task: bool) {
        let mut state = lock_mutex(&self.state);
        match has_task {
            true => state.known.insert(job.clone()),
            false => state.known.remove(job),
        };
    }

    fn is_known(&self, job: &JobId) -> bool {
        lock_mutex(&self.state).known.contains(job)
    }

    async fn next(&self) -> JobId {
        loop {
            {
                let mut state = lock_mutex(&self.state);
                if let Some(job) = state.queue.pop_front() {
                    state.queued.remove(&job);
                    return job;
                }
            }
            self.wakeup.notified().await;
        }
    }

    fn follow(&self, changes: &[RecordChange]) {
        // The jobs that were put come first, so that a job that was renamed takes its task along.
        for change in changes {
            if let RecordChange::Put(Record::Job(job)) = change
                && (!job.job.triggers.is_empty() || self.is_known(&job.id))
            {
                self.add(&job.id);
            }
        }
        for change in changes {
            if let RecordChange::Delete(RecordKey::Job(job)) = change
                && self.is_known(job)
            {
                self.add(job);
            }
        }
    }
}

impl EngineObserver for ChangedTriggers {
    fn on_event(&self, news: &EngineEvent<'_>) {
        match news {
            EngineEvent::TriggersChecked(job) => self.add(job),
            EngineEvent::Committed { done, .. } => self.follow(&done.changes),
            _ => {}
        }
    }
}

impl TriggerKeeper {
    pub(super) fn new(
        jobs: TriggerTasks,
        worker: TriggerWorker,
        changed: Arc<ChangedTriggers>,
        clock: Arc<dyn MachineClock>,
    ) -> Self {
        Self { jobs, worker, changed, clock, is_registered: Cell::new(false), registered: Notify::new() }
    }

    /// Keeps the tasks and makes their steps until it is dropped.
    pub(super) async fn run(&self) {
        let work = async {
            // Nothing is registered, and no heartbeat is sent, before the first task exists.
            self.registered.notified().await;
            self.worker.run().await;
        };
        tokio::join!(self.keep(), work);
    }

    async fn keep(&self) {
        loop {
            let begun = self.clock.uptime();
            match self.jobs.jobs().await {
                Ok(jobs) => {
                    for (job, is_ended) in jobs {
                        if is_ended {
                            // It shuts down in a step.
                            self.register().await;
                        } else if let Some(job) = job {
                            self.changed.set_known(&job, true);
                            self.changed.add(&job);
                        }
                    }
                }
                Err(error) => report(&error),
            }
            while COMPARE_EVERY > self.clock.uptime().minus(begun) {
                let left = COMPARE_EVERY.minus(self.clock.uptime().minus(begun));
                tokio::select! {
                    biased;
                    job = self.changed.next() => self.compare(&job).await,
                    () = self.clock.sleep(left) => break,
                }
            }
        }
    }

    /// Compares a job with its task. While the store is unreachable, the job is looked at again.
    async fn compare(&self, job: &JobId) {
        let compared = async {
            if self.jobs.concern(job).await? {
                self.register().await;
                let has_task = self.jobs.reconcile(job).await?;
                self.changed.set_known(job, has_task);
            }
            Ok::<(), TaskUnitError>(())
        };
        match compared.await {
            Ok(()) => {}
            Err(TaskUnitError::Fault(fault)) if fault.is_transient() => {
                self.changed.add(job);
                self.clock.sleep(RETRY_WAIT).await;
            }
            // The next comparison of all tasks tries again.
            Err(error) => report(&error),
        }
    }

    /// Registers the class of the tasks, however long it takes.
    async fn register(&self) {
        if self.is_registered.get() {
            return;
        }
        while self.worker.register().await.is_err() {
            self.clock.sleep(RETRY_WAIT).await;
        }
        self.is_registered.set(true);
        self.registered.notify_one();
    }
}

fn report(error: &TaskUnitError) {
    warn!(event = "triggers_failed", "cannot update the triggers of jobs: {error}");
}
