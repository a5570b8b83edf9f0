//! What others do on the store, for verbs that show it. A node tells of its own commits; whoever works without one hears
//! the hints that nodes send each other, and looks what became of the records.

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
use cronhold_store::{Fault, Store};

/// Records that are looked at together.
const CHUNK: usize = 256;
/// Pauses that are remembered as told.
const TOLD_MAX: usize = 4_096;

/// Tells what others do, from a time on.
pub(super) async fn listen(store: Arc<dyn Store>, feed: Arc<FeedBuffer>, since: Instant) -> Infallible {
    let mut teller = RecordNotifier { feed, since, told: BTreeSet::new(), is_away: false };
    loop {
        let hints = store.hints().await;
        let keys: BTreeSet<RecordKey> = hints.into_iter().map(|hint| hint.key).filter(is_shown).collect();
        let keys: Vec<RecordKey> = keys.into_iter().collect();
        for keys in keys.chunks(CHUNK) {
            let looked = teller.look(&*store, keys).await;
            teller.note(looked.err().as_ref());
        }
    }
}

/// Whether there is something to say of a record.
fn is_shown(key: &RecordKey) -> bool {
    key.run_list_id().is_some() || matches!(key, RecordKey::Job(_) | RecordKey::JobState(_) | RecordKey::Pause)
}

/// Tells of records.
struct RecordNotifier {
    feed: Arc<FeedBuffer>,
    since: Instant,
    /// Pauses and ends of pauses that were told: the record of a job's runs changes for many other reasons.
    told: BTreeSet<(Option<JobId>, Instant)>,
    is_away: bool,
}

impl RecordNotifier {
    async fn look(&mut self, store: &dyn Store, keys: &[RecordKey]) -> Result<(), Fault> {
        let found = store.load(keys).await?;
        for (key, stored) in keys.iter().zip(found) {
            match (key, stored.map(|stored| stored.record)) {
                (RecordKey::JobState(job), Some(Record::JobState(state))) => {
                    let at = self.new_pause(Some(job), &state.pauses);
                    self.tell_at(at, RecordChange::Put(Record::JobState(state)));
                }
                (RecordKey::Pause, Some(Record::Pause(pauses))) => {
                    let at = self.new_pause(None, &pauses);
                    self.tell_at(at, RecordChange::Put(Record::Pause(pauses)));
                }
                (RecordKey::Job(_) | RecordKey::Run(_) | RecordKey::SkipSpan(_), Some(record)) => {
                    self.tell(self.since, RecordChange::Put(record))
                }
                (RecordKey::Job(_), None) => self.tell(self.since, RecordChange::Delete(key.clone())),
                _ => {}
            }
        }
        Ok(())
    }

    /// When a pause began or ended that was not told yet.
    fn new_pause(&mut self, job: Option<&JobId>, pauses: &PauseState) -> Option<Instant> {
        let began = pauses.current.as_ref().map(|pause| pause.since);
        let at = began.or(pauses.last.map(|(_, to)| to)).filter(|at| *at > self.since)?;
        if self.told.len() == TOLD_MAX {
            self.told.clear();
        }
        self.told.insert((job.cloned(), at)).then_some(at)
    }

    fn tell_at(&self, at: Option<Instant>, change: RecordChange) {
        if let Some(at) = at {
            self.tell(at, change);
        }
    }

    fn tell(&self, at: Instant, change: RecordChange) {
        // Who did it is not told, and stands in the record where it matters.
        let nobody = RunOwner { node: NodeId::from_bits(0), incarnation: 0 };
        let stamp = CommandStamp { at, actor: Actor::Watchdog, owner: nobody };
        let done = DecidedUnit { changes: vec![change], ..DecidedUnit::default() };
        self.feed.on_event(&EngineEvent::Committed { stamp: &stamp, done: &done });
    }

    /// Tells that the store went away, or is back.
    fn note(&mut self, fault: Option<&Fault>) {
        match fault {
            Some(fault) if !self.is_away => self.feed.on_event(&EngineEvent::StoreUnavailable(fault)),
            None if self.is_away => self.feed.on_event(&EngineEvent::StoreAvailable),
            _ => {}
        }
        self.is_away = fault.is_some();
    }
}
