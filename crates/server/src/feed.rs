//! The event feed. The node appends what it has committed to a ring buffer; readers are notified and read at their own
//! pace. A reader that is too slow gets a gap instead of the events that were overwritten. The node never waits.
//!
//! The ring holds shared records. They are serialised only when a reader wants them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cronhold_core::command::CommandStamp;
use cronhold_core::decision::{DecidedUnit, RecordChange};
use cronhold_core::record::{ActivePause, PauseState, Record, RecordKey};
use cronhold_core::{JobId, RunId};
use cronhold_engine::EngineEvent;
use tokio::sync::watch;
use tracing::info;

use crate::find_run::ListedRun;

/// Events that are kept for readers that reconnect.
const KEPT_MAX: usize = 4_096;
/// Events that a reader gets in one batch.
const BATCH_MAX: usize = 256;

/// Unreadable records that are told apart; more count as that many.
const UNREADABLE_MAX: usize = 1_000;

/// The event feed.
#[derive(Debug)]
pub struct FeedBuffer {
    ring: Mutex<FeedRing>,
    /// The number of the latest event; readers wait for it to change.
    bell: watch::Sender<u64>,
    /// Records that the node could not read since its start, each once.
    unreadable: Mutex<BTreeSet<String>>,
}

/// The ring buffer of the latest events.
#[derive(Debug, Default)]
struct FeedRing {
    /// Identifies one start of the node. The numbers of events begin anew with each start.
    epoch: u64,
    /// The number of the next event.
    next: u64,
    events: VecDeque<FeedEntry>,
}

/// An event. Cheap to clone.
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
    Events(Vec<(EventId, FeedEntry)>),
    /// Events were overwritten before they were read. The reader continues after this one.
    Gap(EventId),
}

/// A reader of the feed.
#[derive(Debug)]
pub(crate) struct FeedReader {
    feed: Arc<FeedBuffer>,
    bell: watch::Receiver<u64>,
    /// The event to read next.
    at: EventId,
}

impl Default for FeedBuffer {
    fn default() -> Self {
        Self { ring: Mutex::default(), bell: watch::Sender::new(0), unreadable: Mutex::default() }
    }
}

impl cronhold_engine::EngineObserver for FeedBuffer {
    fn on_event(&self, news: &EngineEvent<'_>) {
        match news {
            EngineEvent::Committed { stamp, done } => self.push_all(Some(stamp), events(stamp, done)),
            EngineEvent::StoreUnavailable(fault) => self.push_all(None, [FeedEntry::Store(Some(fault.to_string()))]),
            EngineEvent::StoreAvailable => self.push_all(None, [FeedEntry::Store(None)]),
            EngineEvent::Ready { .. } => self.push_all(None, [FeedEntry::Node("it is ready".to_owned())]),
            EngineEvent::ClockStep { forward, by } => {
                let direction = if *forward { "forward" } else { "back" };
                self.push_all(None, [FeedEntry::Node(format!("its clock was set {direction} by {by}"))]);
            }
            EngineEvent::Skew { is_off, is_ahead, by } => {
                let what = match (is_off, is_ahead) {
                    (true, true) => format!("its clock is {by} ahead of the store's time"),
                    (true, false) => format!("its clock is {by} behind the store's time"),
                    (false, _) => "its clock agrees with the store's time".to_owned(),
                };
                self.push_all(None, [FeedEntry::Node(what)]);
            }
            EngineEvent::NodeJoined(name) => self.push_all(None, [FeedEntry::Node(format!("node {name} is there"))]),
            EngineEvent::NodeGone(name) => self.push_all(None, [FeedEntry::Node(format!("node {name} is gone"))]),
            EngineEvent::Draining(on) => {
                let what = if *on { "it drains" } else { "it drains no more" };
                self.push_all(None, [FeedEntry::Node(what.to_owned())]);
            }
            EngineEvent::RecordUnreadable { key, reason } => {
                self.note_unreadable(&key.map_or_else(|| (*reason).to_owned(), ToString::to_string));
            }
            EngineEvent::Repaired { .. }
            | EngineEvent::OlderZones { .. }
            | EngineEvent::CommandDropped { .. }
            | EngineEvent::Replaced
            | EngineEvent::ReportIgnored(_) => {}
        }
    }
}

impl FeedBuffer {
    /// Reads what comes after an event; after the latest, when none is named.
    pub(crate) fn reader(self: &Arc<Self>, after: Option<EventId>) -> FeedReader {
        let bell = self.bell.subscribe();
        let latest = self.lock().latest();
        let EventId { epoch, number } = after.unwrap_or(latest);
        FeedReader { feed: Arc::clone(self), bell, at: EventId { epoch, number: number.saturating_add(1) } }
    }

    /// How many records the node could not read since its start, at most [`UNREADABLE_MAX`].
    pub(crate) fn unreadable_records(&self) -> u64 {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    fn note_unreadable(&self, record: &str) {
        let mut unreadable = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        if unreadable.len() < UNREADABLE_MAX {
            unreadable.insert(record.to_owned());
        }
    }

    fn push_all(&self, stamp: Option<&CommandStamp>, events: impl IntoIterator<Item = FeedEntry>) {
        let mut ring = self.lock();
        let before = ring.next;
        if let Some(stamp) = stamp.filter(|_| ring.epoch == 0) {
            // Every start of a node has another number, and nodes have other ids.
            let owner = stamp.owner;
            let id = u64::try_from(owner.node.bits() & 0xffff_ffff).expect("so many bits fit");
            ring.epoch = (id << 32 | u64::from(owner.incarnation)).max(1);
        }
        for event in events {
            if ring.events.len() == KEPT_MAX {
                ring.events.pop_front();
            }
            ring.events.push_back(event);
            ring.next += 1;
        }
        let next = ring.next;
        drop(ring);
        if next != before {
            self.bell.send_replace(next);
        }
    }

    fn lock(&self) -> MutexGuard<'_, FeedRing> {
        // Nothing in here can panic half way.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedRing {
    /// The event that was told last. The first has the number 1, so that there is one before it.
    fn latest(&self) -> EventId {
        EventId { epoch: self.epoch, number: self.next }
    }

    fn read(&self, at: EventId) -> FeedRead {
        let first = self.next - self.events.len() as u64 + 1;
        // What was told before the first commit belongs to the same life.
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
    /// The event before the next one: what someone names who comes back.
    pub(crate) fn position(&self) -> EventId {
        EventId { epoch: self.at.epoch, number: self.at.number - 1 }
    }

    /// Waits for what comes next; never empty. May be dropped at any time.
    pub(crate) async fn next(&mut self) -> FeedRead {
        loop {
            self.bell.borrow_and_update();
            let read = self.feed.lock().read(self.at);
            let last = match &read {
                FeedRead::Gap(latest) => {
                    info!(
                        event = "feed_reader_lagged",
                        wanted = self.at.number,
                        latest = latest.number,
                        "a reader of the feed is too slow, or returns too late; it is told to start over"
                    );
                    Some(*latest)
                }
                FeedRead::Events(events) => events.last().map(|(id, _)| *id),
            };
            if let Some(EventId { epoch, number }) = last {
                self.at = EventId { epoch, number: number + 1 };
                return read;
            }
            // The feed that is read is held here, so its bell does not go away.
            let _ = self.bell.changed().await;
        }
    }

    /// Waits until something may have happened to a run.
    pub(crate) async fn hears_of(&mut self, wanted: RunId) {
        loop {
            match self.next().await {
                FeedRead::Gap(_) => return,
                FeedRead::Events(events) => {
                    if events
                        .iter()
                        .any(|(_, event)| matches!(event, FeedEntry::Run(ListedRun::Run(run)) if run.id == wanted))
                    {
                        return;
                    }
                }
            }
        }
    }
}

/// What a commit tells, in the order of its changes.
fn events(stamp: &CommandStamp, done: &DecidedUnit) -> Vec<FeedEntry> {
    let paused = |job: Option<&JobId>, pauses: &PauseState| {
        // The record changes for many reasons. That its pause began or ended is told by the time of this commit.
        let began = pauses.current.as_ref().is_some_and(|pause| pause.since == stamp.at);
        let ended = pauses.last.is_some_and(|(_, to)| to == stamp.at);
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

impl FeedEntry {
    /// The job that it is about; none, when it is about everything.
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
