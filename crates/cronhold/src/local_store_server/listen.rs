//! Follows changes of the store, for verbs that show them. A node reports its own commits. A command without a node
//! receives the change notifications that nodes send each other, and loads the records that they name.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use cronhold_core::command::CommandStamp;
use cronhold_core::decision::{DecidedUnit, RecordChange};
use cronhold_core::record::{Actor, PauseState, Record, RecordKey, RunOwner};
use cronhold_core::{JobId, NodeId};
use cronhold_engine::{EngineEvent, EngineObserver as _};
use cronhold_schedule::Instant;
use cronhold_server::FeedBuffer;
use cronhold_store::{Fault, Store, load_readable};

/// Records that are loaded with one request.
const CHUNK: usize = 256;
/// Pauses that are remembered as reported.
const REPORTED_MAX: usize = 4_096;

/// Reports all changes of the store after `since` to the feed.
pub(super) async fn listen(store: Arc<dyn Store>, feed: Arc<FeedBuffer>, since: Instant) -> Infallible {
    let mut notifier = RecordNotifier { feed, since, reported: BTreeSet::new(), is_unavailable: false };
    loop {
        let hints = store.hints().await;
        let keys: BTreeSet<RecordKey> = hints.into_iter().map(|hint| hint.key).filter(is_shown).collect();
        let keys: Vec<RecordKey> = keys.into_iter().collect();
        for keys in keys.chunks(CHUNK) {
            let loaded = notifier.load(&*store, keys).await;
            notifier.report_store(loaded.err().as_ref());
        }
    }
}

/// Whether the feed shows changes of this record.
fn is_shown(key: &RecordKey) -> bool {
    key.run_list_id().is_some() || matches!(key, RecordKey::Job(_) | RecordKey::JobState(_) | RecordKey::Pause)
}

/// Loads changed records and reports them to the feed.
struct RecordNotifier {
    feed: Arc<FeedBuffer>,
    since: Instant,
    /// Starts and ends of pauses that were reported. The record that holds them also changes for other reasons.
    reported: BTreeSet<(Option<JobId>, Instant)>,
    is_unavailable: bool,
}

impl RecordNotifier {
    async fn load(&mut self, store: &dyn Store, keys: &[RecordKey]) -> Result<(), Fault> {
        for (key, stored) in load_readable(store, keys).await?.records {
            match (&key, stored.map(|stored| stored.record)) {
                (RecordKey::JobState(job), Some(Record::JobState(state))) => {
                    let at = self.new_pause(Some(job), &state.pauses);
                    self.report_pause(at, RecordChange::Put(Record::JobState(state)));
                }
                (RecordKey::Pause, Some(Record::Pause(pauses))) => {
                    let at = self.new_pause(None, &pauses);
                    self.report_pause(at, RecordChange::Put(Record::Pause(pauses)));
                }
                (RecordKey::Job(_) | RecordKey::Run(_) | RecordKey::SkipSpan(_), Some(record)) => {
                    self.report(self.since, RecordChange::Put(record));
                }
                (RecordKey::Job(_), None) => self.report(self.since, RecordChange::Delete(key.clone())),
                _ => {}
            }
        }
        Ok(())
    }

    /// When the latest pause started or ended; `None` if that was reported already or is older than `since`.
    fn new_pause(&mut self, job: Option<&JobId>, pauses: &PauseState) -> Option<Instant> {
        let began = pauses.current.as_ref().map(|pause| pause.since);
        let at = began.or(pauses.last.map(|(_, to)| to)).filter(|at| *at > self.since)?;
        if self.reported.len() == REPORTED_MAX {
            self.reported.clear();
        }
        self.reported.insert((job.cloned(), at)).then_some(at)
    }

    fn report_pause(&self, at: Option<Instant>, change: RecordChange) {
        if let Some(at) = at {
            self.report(at, change);
        }
    }

    fn report(&self, at: Instant, change: RecordChange) {
        // A notification does not name the actor. Records name it where it matters.
        let unknown = RunOwner { node: NodeId::from_bits(0), incarnation: 0 };
        let stamp = CommandStamp { at, actor: Actor::Watchdog, owner: unknown };
        let done = DecidedUnit { changes: vec![change], ..DecidedUnit::default() };
        self.feed.on_event(&EngineEvent::Committed { stamp: &stamp, done: &done });
    }

    /// Reports that the store became unavailable, or is available again.
    fn report_store(&mut self, fault: Option<&Fault>) {
        match fault {
            Some(fault) if !self.is_unavailable => self.feed.on_event(&EngineEvent::StoreUnavailable(fault)),
            None if self.is_unavailable => self.feed.on_event(&EngineEvent::StoreAvailable),
            _ => {}
        }
        self.is_unavailable = fault.is_some();
    }
}
