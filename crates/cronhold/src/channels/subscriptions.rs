//! Follows who subscribes to messages about runs: the ports that a store of tasks has, and the listeners of this process.
//! Every request to the store passes here, so a subscription is known when the reply to its request arrives.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use cronhold_core::JobId;
use cronhold_core::run::State;
use cronhold_core::task::{Channel, RunChannels, TaskAct, TaskUnit};
use cronhold_engine::RunSubscriptions;
use cronhold_store::tasks::{ChannelListener, ChannelMessage, TaskReceipt, TaskStore, TaskStoreWrapper, TaskUnitError};
use cronhold_store::{Fault, Pending, Store, Wrapper, lock_mutex};

/// Channels that are read at once.
const PAGE: usize = 1_000;
/// Texts that come before `/`, and before `/cronhold`, and between which there is no channel of runs.
const BEFORE: [&str; 2] = [".\u{10FFFF}", "/cronholc\u{10FFFF}"];
/// What the channels after the second one begin with.
const OWN: &str = "/cronhold";

/// A store whose tasks are followed.
#[derive(Debug)]
pub(crate) struct FollowedStore {
    store: Arc<dyn Store>,
    tasks: Arc<FollowedTasks>,
}

/// A store of tasks whose subscriptions are followed.
pub(crate) struct FollowedTasks {
    tasks: Arc<dyn TaskStore>,
    subscriptions: RunSubscriptions,
    /// Reads of the subscriptions: how many have begun, and the latest one whose result is in use.
    reads: Mutex<(u64, u64)>,
    listened: ListenedChannels,
}

/// The channels of runs to which this process listens, and how many listeners each has.
type ListenedChannels = Arc<Mutex<BTreeMap<Channel, usize>>>;

/// A listener that is counted while it exists.
#[derive(Debug)]
struct CountedListener {
    listener: Box<dyn ChannelListener>,
    channels: Vec<Channel>,
    listened: ListenedChannels,
}

impl FollowedStore {
    /// A store whose tasks are followed, and these tasks; the store itself if it does not keep tasks.
    pub(crate) fn wrap(
        store: Arc<dyn Store>,
        subscriptions: RunSubscriptions,
    ) -> (Arc<dyn Store>, Option<Arc<FollowedTasks>>) {
        let Some(tasks) = store.task_store() else { return (store, None) };
        let tasks = FollowedTasks { tasks, subscriptions, reads: Mutex::default(), listened: Arc::default() };
        let tasks = Arc::new(tasks);
        (Arc::new(Self { store, tasks: Arc::clone(&tasks) }), Some(tasks))
    }
}

impl FollowedTasks {
    /// Reads which channels of runs have subscribers. If that fails, those that were read before stay in use.
    pub(crate) async fn refresh(&self) -> Result<(), Fault> {
        let read = {
            let mut reads = lock_mutex(&self.reads);
            reads.0 += 1;
            reads.0
        };
        let channels = self.read_channels().await?;
        let mut reads = lock_mutex(&self.reads);
        // A read that began later has seen more.
        if reads.1 < read {
            reads.1 = read;
            self.subscriptions.set(RunChannels::new(channels));
        }
        Ok(())
    }

    async fn read_channels(&self) -> Result<Vec<Channel>, Fault> {
        let [before_root, before_own] = BEFORE.map(|text| Channel::parse(text).expect("it is a channel"));
        let root = self.tasks.channels(Some(&before_root), 1).await?;
        let mut channels: Vec<Channel> = root.into_iter().map(|summary| summary.channel).collect();
        let mut after = before_own;
        loop {
            let page = self.tasks.channels(Some(&after), PAGE).await?;
            let is_last = page.len() < PAGE;
            for summary in page {
                if !summary.channel.as_str().starts_with(OWN) {
                    return Ok(channels);
                }
                after = summary.channel.clone();
                channels.push(summary.channel);
            }
            if is_last {
                return Ok(channels);
            }
        }
    }

    /// Whether only listeners of this process, and no port, receive the message about a run.
    pub(crate) fn is_only_listened(&self, job: &JobId, state: State) -> bool {
        let listened = lock_mutex(&self.listened);
        let is_listened = !listened.is_empty()
            && Channel::of_run(job, state).levels().iter().any(|level| listened.contains_key(level));
        is_listened && !self.subscriptions.get().hear(job, state)
    }

    /// Whether no listener of this process receives messages about runs.
    pub(crate) fn has_no_listeners(&self) -> bool {
        lock_mutex(&self.listened).is_empty()
    }
}

/// Whether a unit can change which channels have subscribers.
fn can_subscribe(unit: &TaskUnit) -> bool {
    let can = |act: &TaskAct| {
        matches!(
            act,
            TaskAct::Create(_) | TaskAct::SetChannels { .. } | TaskAct::SetPorts { .. } | TaskAct::Delete { .. }
        )
    };
    unit.acts.iter().any(can)
}

impl Wrapper for FollowedStore {
    fn inside(&self) -> &dyn Store {
        &*self.store
    }

    fn task_store(&self) -> Option<Arc<dyn TaskStore>> {
        Some(Arc::clone(&self.tasks) as _)
    }
}

impl TaskStoreWrapper for FollowedTasks {
    fn inside(&self) -> &dyn TaskStore {
        &*self.tasks
    }

    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>> {
        if !units.iter().any(can_subscribe) {
            return self.tasks.commit(units);
        }
        Box::pin(async move {
            let results = self.tasks.commit(units).await;
            // If it fails, the next regular refresh reads them.
            let _ = self.refresh().await;
            results
        })
    }

    fn listen(&self, channels: Vec<Channel>) -> Pending<'_, Result<Box<dyn ChannelListener>, Fault>> {
        Box::pin(async move {
            let of_runs: Vec<Channel> = channels.iter().filter(|one| RunChannels::can_hear(one)).cloned().collect();
            let listener = self.tasks.listen(channels).await?;
            if of_runs.is_empty() {
                return Ok(listener);
            }
            let mut listened = lock_mutex(&self.listened);
            of_runs.iter().for_each(|channel| *listened.entry(channel.clone()).or_default() += 1);
            let listened = Arc::clone(&self.listened);
            Ok(Box::new(CountedListener { listener, channels: of_runs, listened }) as Box<dyn ChannelListener>)
        })
    }
}

impl ChannelListener for CountedListener {
    fn next(&mut self) -> Pending<'_, ChannelMessage> {
        self.listener.next()
    }
}

impl Drop for CountedListener {
    fn drop(&mut self) {
        let mut listened = lock_mutex(&self.listened);
        for channel in &self.channels {
            if let Some(count) = listened.get_mut(channel) {
                *count -= 1;
                if *count == 0 {
                    listened.remove(channel);
                }
            }
        }
    }
}

impl fmt::Debug for FollowedTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FollowedTasks({:?})", self.tasks)
    }
}
