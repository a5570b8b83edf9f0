//! Where jobs and tasks meet in channels. In reading order: [`subscriptions`] knows who hears about runs; [`announcer`]
//! publishes transitions to plain listeners; [`trigger_keeper`] keeps a task for each job with `triggers`, by
//! [`trigger_tasks`], and [`trigger_worker`] makes its steps.
//!
//! Nothing here is a common commit of jobs and tasks. What passes between them is a message that can be sent again.

mod announcer;
mod subscriptions;
mod trigger_keeper;
mod trigger_tasks;
mod trigger_worker;

use std::sync::Arc;

use cronhold_engine::{EngineObserver, EntropySource, MachineClock, NodeHandle, RunSubscriptions};
use cronhold_schedule::Span;
use cronhold_store::Store;

use self::announcer::RunAnnouncer;
pub(crate) use self::subscriptions::FollowedStore;
use self::subscriptions::FollowedTasks;
use self::trigger_keeper::{ChangedTriggers, TriggerKeeper};
use self::trigger_tasks::TriggerTasks;
use self::trigger_worker::TriggerWorker;

/// How often the subscriptions of a store that other processes use are read.
const REFRESH_SHARED: Span = Span::from_secs(1);
/// How often those of a store of this process are read, beside the reads after each change.
const REFRESH_OWN: Span = Span::from_secs(60);
/// The wait after a failure of the store.
const RETRY_WAIT: Span = Span::from_secs(1);

/// The parts of a daemon that connect jobs with tasks.
#[derive(Debug)]
pub(crate) struct ChannelParts {
    store: Arc<dyn Store>,
    tasks: Arc<FollowedTasks>,
    announcer: Arc<RunAnnouncer>,
    changed: Arc<ChangedTriggers>,
    clock: Arc<dyn MachineClock>,
    entropy: Arc<dyn EntropySource>,
}

impl ChannelParts {
    /// The parts for a store, and the store that the daemon uses from now on; no parts if it does not keep tasks.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        subscriptions: RunSubscriptions,
        clock: &Arc<dyn MachineClock>,
        entropy: &Arc<dyn EntropySource>,
    ) -> (Arc<dyn Store>, Option<Self>) {
        let (store, tasks) = FollowedStore::wrap(store, subscriptions);
        let Some(tasks) = tasks else { return (store, None) };
        let announcer = Arc::new(RunAnnouncer::new(Arc::clone(&tasks)));
        let (clock, entropy) = (Arc::clone(clock), Arc::clone(entropy));
        let parts = Self { store: Arc::clone(&store), tasks, announcer, changed: Arc::default(), clock, entropy };
        (store, Some(parts))
    }

    /// What receives the events of the node.
    pub(crate) fn observers(&self) -> [Arc<dyn EngineObserver>; 2] {
        [Arc::clone(&self.announcer) as _, Arc::clone(&self.changed) as _]
    }

    /// Connects jobs with tasks until it is dropped.
    pub(crate) async fn run(&self, node: &NodeHandle) {
        let jobs = TriggerTasks::new(Arc::clone(&self.store), Arc::clone(&self.tasks) as _);
        let (clock, entropy) = (Arc::clone(&self.clock), Arc::clone(&self.entropy));
        let worker = TriggerWorker::new(Arc::clone(&self.tasks) as _, jobs.clone(), clock, entropy, node.clone());
        let keeper = TriggerKeeper::new(jobs, worker, Arc::clone(&self.changed), Arc::clone(&self.clock));
        tokio::join!(self.refresh_subscriptions(), self.announcer.run(), keeper.run());
    }

    async fn refresh_subscriptions(&self) {
        let every = if self.store.is_shared() { REFRESH_SHARED } else { REFRESH_OWN };
        loop {
            let wait = if self.tasks.refresh().await.is_ok() { every } else { RETRY_WAIT };
            self.clock.sleep(wait).await;
        }
    }
}
