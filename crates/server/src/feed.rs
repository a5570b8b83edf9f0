//! The event feed. The node appends an event for each committed change to a ring buffer; readers are notified and read
//! at their own pace. A reader that is too slow gets a gap instead of the overwritten events. The node never waits.
//!
//! The ring holds shared records. The first reader that needs an event serialises it, for all readers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use cronhold_core::command::CommandStamp;
use cronhold_core::decision::{DecidedUnit, RecordChange};
use cronhold_core::record::{ActivePause, Actor, PauseState, Record, RecordKey};
use cronhold_core::{JobId, NodeId, RunId};
use cronhold_engine::EngineEvent;
use cronhold_store::{UnreadableRecord, lock_mutex};
use tokio::sync::watch;
use tracing::info;

use crate::find_run::ListedRun;

/// Number of events that are kept for readers that reconnect.
const KEPT_MAX: usize = 4_096;
/// Maximum number of events that a reader gets in one batch. A reader that waits for its client keeps them in memory.
pub(crate) const BATCH_MAX: usize = 64;

/// Maximum number of distinct unreadable records that are counted.
const UNREADABLE_MAX: usize = 1_000;

/// The event feed.
#[derive(Debug)]
pub struct FeedBuffer {
    ring: Mutex<FeedRing>,
    /// The number of the latest event; readers wait for it to change.
    latest_number: watch::Sender<u64>,
    known_damage: Mutex<KnownDamage>,
    /// Live nodes with other time zone data, by name and release.
    other_zones: Mutex<Vec<(String, String)>>,
    keeper: Mutex<KeeperHealth>,
}

/// Whether the keeper of this node can start programs.
#[derive(Debug, Default)]
struct KeeperHealth {
    /// Why it cannot; `None` if it can, or if it has not been reached yet.
    problem: Option<String>,
    /// How often it began to fail.
    failures: u64,
}

/// What is known to be damaged in the store.
#[derive(Debug, Default)]
struct KnownDamage {
    /// Records that cannot be read, by key or, without one, by reason. A record that is written since is readable.
    unreadable: BTreeMap<String, Option<RecordKey>>,
    /// Whether a part of the store could not be read since the start.
    is_store_damaged: bool,
}

/// The ring buffer of the latest events.
#[derive(Debug, Default)]
struct FeedRing {
    /// Identifies one start of the node. Event numbers restart with each start.
    epoch: u64,
    /// The number of the next event.
    next: u64,
    events: VecDeque<Arc<KeptEvent>>,
}

/// An event in the ring.
#[derive(Debug, PartialEq)]
pub(crate) struct KeptEvent {
    pub(crate) entry: FeedEntry,
    /// The event as clients receive it, without its id.
    text: OnceLock<String>,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FeedEntry {
    /// A run was created or changed, or a span of skips was created or extended.
    Run(ListedRun),
    /// A job has a new revision; `None` if it was removed.
    Job(JobId, Option<u32>),
    /// A job, or everything for `None`, was paused or resumed.
    Pause(Option<JobId>, Option<ActivePause>),
    /// A message about a node.
    Node(String),
    /// The store is unavailable, with the reason, or available again.
    Store(Option<String>),
}

/// The id of an event: the start of the node, and the number of the event since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) epoch: u64,
    pub(crate) number: u64,
}

/// What a reader gets next.
#[derive(Debug, PartialEq)]
pub(crate) enum FeedRead {
    /// Events in order.
    Events(Vec<(EventId, Arc<KeptEvent>)>),
    /// Events were overwritten before they were read. The reader continues after this one.
    Gap(EventId),
}

/// A reader of the feed.
#[derive(Debug)]
pub(crate) struct FeedReader {
    feed: Arc<FeedBuffer>,
    latest_number: watch::Receiver<u64>,
    /// The event to read next.
    at: EventId,
}

impl Default for FeedBuffer {
    fn default() -> Self {
        Self {
            ring: Mutex::default(),
            latest_number: watch::Sender::new(0),
            known_damage: Mutex::default(),
            other_zones: Mutex::default(),
            keeper: Mutex::default(),
        }
    }
}

impl cronhold_engine::EngineObserver for FeedBuffer {
    fn on_event(&self, event: &EngineEvent<'_>) {
        match event {
            EngineEvent::Committed { stamp, done } => {
                self.forget_unreadable(done);
                self.push_all(Some(stamp), events(stamp, done));
            }
            EngineEvent::StoreUnavailable(fault) => self.push_all(None, [FeedEntry::Store(Some(fault.to_string()))]),
            EngineEvent::StoreAvailable => self.push_all(None, [FeedEntry::Store(None)]),
            EngineEvent::Ready { .. } => self.push_all(None, [FeedEntry::Node("the node is ready".to_owned())]),
            EngineEvent::ClockStep { forward, by } => {
                let direction = if *forward { "forward" } else { "back" };
                self.push_all(None, [FeedEntry::Node(format!("the clock was set {direction} by {by}"))]);
            }
            EngineEvent::Skew { is_off, is_ahead, by } => {
                let message = match (is_off, is_ahead) {
                    (true, true) => format!("the clock is {by} ahead of the store's time"),
                    (true, false) => format!("the clock is {by} behind the store's time"),
                    (false, _) => "the clock agrees with the store's time".to_owned(),
                };
                self.push_all(None, [FeedEntry::Node(message)]);
            }
            EngineEvent::NodeJoined(name) => self.push_all(None, [FeedEntry::Node(format!("node {name} joined"))]),
            EngineEvent::NodeGone(name) => self.push_all(None, [FeedEntry::Node(format!("node {name} is gone"))]),
            EngineEvent::Draining(on) => {
                let message = if *on { "the node is draining" } else { "the node is no longer draining" };
                self.push_all(None, [FeedEntry::Node(message.to_owned())]);
            }
            EngineEvent::Keeper { problem } => {
                let message = match problem {
                    Some(problem) => format!("the node cannot start programs: {problem}"),
                    None => "the node can start programs again".to_owned(),
                };
                self.record_keeper(*problem);
                self.push_all(None, [FeedEntry::Node(message)]);
            }
            EngineEvent::RecordUnreadable(record) => self.record_unreadable(record),
            EngineEvent::StoreDamaged(_) => self.record_damage(),
            EngineEvent::ZonesDiffer { others, .. } => *lock_mutex(&self.other_zones) = others.to_vec(),
            EngineEvent::TriggersChecked(_)
            | EngineEvent::Repaired { .. }
            | EngineEvent::WatchdogDelayed { .. }
            | EngineEvent::OlderZones { .. }
            | EngineEvent::CommandDropped { .. }
            | EngineEvent::Replaced
            | EngineEvent::ReportIgnored(_) => {}
        }
    }
}

impl FeedBuffer {
    /// Creates a reader of the events after `after`; `None` starts after the latest event.
    pub(crate) fn reader(self: &Arc<Self>, after: Option<EventId>) -> FeedReader {
        let latest_number = self.latest_number.subscribe();
        let latest = self.lock().latest();
        let EventId { epoch, number } = after.unwrap_or(latest);
        FeedReader { feed: Arc::clone(self), latest_number, at: EventId { epoch, number: number.saturating_add(1) } }
    }

    /// Why the keeper of this node cannot start programs; `None` if it can.
    pub(crate) fn keeper_problem(&self) -> Option<String> {
        lock_mutex(&self.keeper).problem.clone()
    }

    /// How often the keeper of this node began to fail.
    pub(crate) fn keeper_failures(&self) -> u64 {
        lock_mutex(&self.keeper).failures
    }

    fn record_keeper(&self, problem: Option<&str>) {
        let mut keeper = lock_mutex(&self.keeper);
        keeper.failures += u64::from(keeper.problem.is_none() && problem.is_some());
        keeper.problem = problem.map(str::to_owned);
    }

    /// How many records are known to be unreadable, at most [`UNREADABLE_MAX`].
    pub(crate) fn unreadable_records(&self) -> u64 {
        lock_mutex(&self.known_damage).unreadable.len() as u64
    }

    /// Whether a part of the store could not be read since the start.
    pub(crate) fn is_store_damaged(&self) -> bool {
        lock_mutex(&self.known_damage).is_store_damaged
    }

    /// The names of live nodes whose time zone data is of another release than this node's, with their releases.
    pub(crate) fn other_zones(&self) -> Vec<(String, String)> {
        lock_mutex(&self.other_zones).clone()
    }

    /// Remembers that a record cannot be read.
    pub(crate) fn record_unreadable(&self, record: &UnreadableRecord) {
        let unreadable = &mut lock_mutex(&self.known_damage).unreadable;
        if unreadable.len() < UNREADABLE_MAX {
            let name = record.key.as_ref().map_or_else(|| record.reason.clone(), ToString::to_string);
            unreadable.insert(name, record.key.clone());
        }
    }

    /// Remembers that a part of the store is damaged.
    pub(crate) fn record_damage(&self) {
        lock_mutex(&self.known_damage).is_store_damaged = true;
    }

    /// Forgets the unreadable records that a commit has replaced or deleted.
    fn forget_unreadable(&self, done: &DecidedUnit) {
        let unreadable = &mut lock_mutex(&self.known_damage).unreadable;
        if !unreadable.is_empty() {
            let changed: Vec<RecordKey> = done.changes.iter().map(RecordChange::key).collect();
            unreadable.retain(|_, key| key.as_ref().is_none_or(|key| !changed.contains(key)));
        }
    }

    fn push_all(&self, stamp: Option<&CommandStamp>, events: impl IntoIterator<Item = FeedEntry>) {
        let mut ring = self.lock();
        let before = ring.next;
        if let Some(stamp) = stamp.filter(|_| ring.epoch == 0) {
            // Node id and incarnation together identify one start of one node.
            let owner = stamp.owner;
            let id = u64::try_from(owner.node.bits() & 0xffff_ffff).expect("32 bits fit");
            ring.epoch = (id << 32 | u64::from(owner.incarnation)).max(1);
        }
        for event in events {
            if ring.events.len() == KEPT_MAX {
                ring.events.pop_front();
            }
            ring.events.push_back(Arc::new(KeptEvent { entry: event, text: OnceLock::new() }));
            ring.next += 1;
        }
        let next = ring.next;
        drop(ring);
        if next != before {
            self.latest_number.send_replace(next);
        }
    }

    fn lock(&self) -> MutexGuard<'_, FeedRing> {
        lock_mutex(&self.ring)
    }
}

impl FeedRing {
    /// The id of the latest event. The first event has the number 1, so that 0 is the position before it.
    fn latest(&self) -> EventId {
        EventId { epoch: self.epoch, number: self.next }
    }

    fn read(&self, at: EventId) -> FeedRead {
        let first = self.next - self.events.len() as u64 + 1;
        // Events before the first commit have the epoch 0 and belong to the same start.
        if !(at.epoch == self.epoch || at.epoch == 0) || at.number < first || at.number > self.next + 1 {
            return FeedRead::Gap(self.latest());
        }
        let skipped = usize::try_from(at.number - first).unwrap_or(usize::MAX);
        let events = self.events.iter().skip(skipped).take(BATCH_MAX).cloned();
        FeedRead::Events(
            events.zip(at.number..).map(|(event, number)| (EventId { epoch: self.epoch, number }, event)).collect(),
        )
    }
}

impl FeedReader {
    /// The id of the last event that was read, with which a client can resume.
    pub(crate) fn position(&self) -> EventId {
        EventId { epoch: self.at.epoch, number: self.at.number - 1 }
    }

    /// Waits for the next events; never returns an empty batch. Cancel-safe.
    pub(crate) async fn next(&mut self) -> FeedRead {
        loop {
            self.latest_number.borrow_and_update();
            let read = self.feed.lock().read(self.at);
            let last = match &read {
                FeedRead::Gap(latest) => {
                    info!(
                        event = "feed_reader_lagged",
                        wanted = self.at.number,
                        latest = latest.number,
                        "a reader of the feed was too slow or reconnected too late; it must reload its state"
                    );
                    Some(*latest)
                }
                FeedRead::Events(events) => events.last().map(|(id, _)| *id),
            };
            if let Some(EventId { epoch, number }) = last {
                self.at = EventId { epoch, number: number + 1 };
                return read;
            }
            // The reader holds the feed, so the sender still exists.
            let _ = self.latest_number.changed().await;
        }
    }

    /// Waits until a run may have changed.
    pub(crate) async fn wait_for_run(&mut self, wanted: RunId) {
        loop {
            match self.next().await {
                FeedRead::Gap(_) => return,
                FeedRead::Events(events) => {
                    if events.iter().any(
                        |(_, event)| matches!(&event.entry, FeedEntry::Run(ListedRun::Run(run)) if run.id == wanted),
                    ) {
                        return;
                    }
                }
            }
        }
    }
}

/// The events of a commit, in the order of its changes.
fn events(stamp: &CommandStamp, done: &DecidedUnit) -> Vec<FeedEntry> {
    let paused = |job: Option<&JobId>, pauses: &PauseState| {
        // The record changes for many reasons. The pause began or ended in this commit if it has the commit's time. If it
        // has the operator of the commit, its end may have been changed; at worst, readers get the same pause twice.
        let is_of_commit = |pause: &ActivePause| {
            let is_by_operator = matches!(stamp.actor, Actor::Operator(_)) && pause.by == stamp.actor;
            pause.since == stamp.at || is_by_operator
        };
        let began = pauses.current.as_ref().is_some_and(is_of_commit);
        let has_expired = stamp.actor == Actor::Limit && !pauses.is_paused();
        let ended = has_expired || pauses.last.is_some_and(|(_, to)| to == stamp.at);
        (began || ended).then(|| FeedEntry::Pause(job.cloned(), pauses.current.clone()))
    };
    let event = |change: &RecordChange| match change {
        RecordChange::Put(Record::Run(run)) => Some(FeedEntry::Run(ListedRun::Run(Arc::clone(run)))),
        RecordChange::Put(Record::SkipSpan(span)) => Some(FeedEntry::Run(ListedRun::SkipSpan(Arc::clone(span)))),
        RecordChange::Put(Record::Job(job)) => Some(FeedEntry::Job(job.id.clone(), Some(job.revision))),
        RecordChange::Delete(RecordKey::Job(job)) => Some(FeedEntry::Job(job.clone(), None)),
        RecordChange::Put(Record::JobState(state)) => paused(Some(&state.job), &state.pauses),
        RecordChange::Put(Record::Pause(pauses)) => paused(None, pauses),
        _ => None,
    };
    done.changes.iter().filter_map(event).collect()
}

impl KeptEvent {
    /// The text for clients. Only the first call for an event uses `format`.
    pub(crate) fn text(&self, format: impl FnOnce(&FeedEntry) -> String) -> &str {
        self.text.get_or_init(|| format(&self.entry))
    }

    /// The node whose name the text needs; `None` if there is none, or the text is there already.
    pub(crate) fn node_to_name(&self) -> Option<NodeId> {
        match &self.entry {
            FeedEntry::Run(run) if self.text.get().is_none() => run.node(),
            _ => None,
        }
    }
}

impl FeedEntry {
    /// The job of the event; `None` if it concerns everything.
    pub(crate) fn job(&self) -> Option<&JobId> {
        match self {
            Self::Run(ListedRun::Run(run)) => Some(&run.job),
            Self::Run(ListedRun::SkipSpan(span)) => Some(&span.job),
            Self::Job(job, _) => Some(job),
            Self::Pause(job, _) => job.as_ref(),
            Self::Node(_) | Self::Store(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
