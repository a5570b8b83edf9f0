//! Wrong stores: what is asked of them is changed on the way there, and their answers on the way back.

use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};

use cronhold_core::decision::{LockRelease, RecordChange};
use cronhold_core::record::{Actor, Record, RecordKey, Run, StoredRecord};
use cronhold_core::{NodeId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Hint, Obligation, Page, Pending, Query, Store, Unit, UnitReceipt, UnitRefusal, Wrapper};

use super::DeliberateBug;
use super::answers::{FirstBeats, seen};
use crate::chance::SimRandom;
use crate::context::SimContext;
use crate::executor::TaskOwner;

/// How wrong the time of every second node is.
const WRONG_TIME: Span = Span::from_secs(20);

/// A store with a mistake.
#[derive(Debug)]
pub(super) struct WrongStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) how: DeliberateBug,
    /// Who asks.
    pub(super) node: NodeId,
    pub(super) seen: Mutex<FirstBeats>,
}

/// A line on which a commit is answered as done when it is sent.
#[derive(Debug)]
pub(super) struct EagerReplyStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) context: SimContext,
    pub(super) whose: TaskOwner,
    pub(super) chance: SimRandom,
}

impl WrongStore {
    /// A unit as it is done.
    async fn spoilt(&self, mut unit: Unit) -> Unit {
        match self.how {
            DeliberateBug::Blind => self.blind(&mut unit, |_| true).await,
            DeliberateBug::Late if is_report(&unit) => self.blind(&mut unit, |_| true).await,
            DeliberateBug::Deaf => self.blind(&mut unit, |key| matches!(key, RecordKey::Node(_))).await,
            DeliberateBug::Grabby => self.free_taken(&mut unit).await,
            DeliberateBug::FreesEarly => {
                let is_there = |run: &&Run| run.state == State::Running && run.lock.is_some();
                let freed: Vec<LockRelease> = written(&unit)
                    .filter(is_there)
                    .filter_map(|run| Some(LockRelease { lock: run.lock.clone()?, holder: run.id }))
                    .collect();
                unit.free.extend(freed);
            }
            DeliberateBug::Careless => {
                let compared = &unit.compare;
                let is_new = |record: &Record| compared.contains(&(record.key(), None));
                unit.changes.retain(|change| match change {
                    RecordChange::Put(record @ Record::Run(run)) => run.state != State::Skipped || !is_new(record),
                    RecordChange::Put(record @ Record::SkipSpan(_)) => !is_new(record),
                    _ => true,
                });
            }
            _ => {}
        }
        unit
    }

    /// Lets a unit expect what is there, whatever that is.
    async fn blind(&self, unit: &mut Unit, is_blind: impl Fn(&RecordKey) -> bool) {
        let keys: Vec<RecordKey> = unit.compare.iter().map(|(key, _)| key.clone()).collect();
        let Ok(found) = self.store.load(&keys).await else { return };
        for ((key, expected), found) in unit.compare.iter_mut().zip(found).filter(|((key, _), _)| is_blind(key)) {
            debug_assert!(!matches!(key, RecordKey::Lock(_)), "locks are not compared");
            *expected = found.map(|stored| stored.version);
        }
    }

    /// Frees what others hold and the unit takes.
    async fn free_taken(&self, unit: &mut Unit) {
        let keys: Vec<RecordKey> = unit.take.iter().map(|take| RecordKey::Lock(take.lock.clone())).collect();
        let Ok(found) = self.store.load(&keys).await else { return };
        for stored in found.into_iter().flatten() {
            if let Record::Lock(held) = stored.record {
                unit.free.push(LockRelease { lock: held.name.clone(), holder: held.holder });
            }
        }
    }

    fn see(&self, stored: Option<StoredRecord>) -> Option<StoredRecord> {
        let mut beats = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen(self.how, self.node, &mut beats, stored)
    }

    /// Whether a list is empty for those who make this mistake.
    fn hides(&self, query: &Query) -> bool {
        match self.how {
            DeliberateBug::Forgetful => matches!(query, Query::Unfinished { .. } | Query::Backlogs { .. }),
            DeliberateBug::Asleep => matches!(query, Query::Unfinished { node: Some(_), .. }),
            _ => false,
        }
    }
}

impl Wrapper for WrongStore {
    fn inside(&self) -> &dyn Store {
        &*self.store
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        Box::pin(async move {
            let found = self.store.load(keys).await?;
            Ok(found.into_iter().map(|stored| self.see(stored)).collect())
        })
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        Box::pin(async move {
            let mut results = Vec::with_capacity(units.len());
            for unit in units {
                results.extend(self.store.commit(vec![self.spoilt(unit).await]).await);
            }
            if self.how == DeliberateBug::OneFence {
                let fences = results.iter_mut().flatten().flat_map(|committed| &mut committed.fences);
                fences.for_each(|(_, fence)| *fence = 1);
            }
            results
        })
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        match self.how {
            DeliberateBug::Forgetful | DeliberateBug::Asleep => Box::pin(async { Ok(Vec::new()) }),
            _ => self.store.due(after, until, limit),
        }
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        Box::pin(async move {
            if self.hides(query) {
                return Ok(Page::default());
            }
            let Page { records, unreadable } = self.store.page(query, limit).await?;
            let records = records.into_iter().filter_map(|stored| self.see(Some(stored))).collect();
            Ok(Page { records, unreadable })
        })
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        if self.how == DeliberateBug::Hintless { Box::pin(pending()) } else { self.store.hints() }
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        let is_wrong = self.how == DeliberateBug::WrongTime && self.node.bits().is_multiple_of(2);
        Box::pin(async move {
            let now = self.store.time().await?;
            Ok(if is_wrong { now.plus(WRONG_TIME) } else { now })
        })
    }
}

impl Wrapper for EagerReplyStore {
    fn inside(&self) -> &dyn Store {
        &*self.store
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        let answers = units.iter().map(|_| Ok(UnitReceipt::default())).collect();
        let (store, time, wait) = (Arc::clone(&self.store), self.context.time.clone(), self.chance.micros(10, 50_000));
        self.context.executor.spawn(self.whose, async move {
            time.sleep(wait).await;
            store.commit(units).await;
        });
        Box::pin(async move { answers })
    }
}

/// The runs that a unit writes.
fn written(unit: &Unit) -> impl Iterator<Item = &Run> {
    unit.changes.iter().filter_map(|change| match change {
        RecordChange::Put(Record::Run(run)) => Some(&**run),
        _ => None,
    })
}

/// Whether a unit writes what a program has reported.
fn is_report(unit: &Unit) -> bool {
    written(unit).any(|run| run.log.last().is_some_and(|last| last.actor == Actor::Program))
}
