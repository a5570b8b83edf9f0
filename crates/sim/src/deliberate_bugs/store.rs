//! Stores with deliberate bugs, which change requests and replies.

use std::future::pending;
use std::sync::{Arc, Mutex};

use cronhold_core::decision::{LockRelease, RecordChange};
use cronhold_core::record::{Actor, Record, RecordKey, Run, StoredRecord};
use cronhold_core::{NodeId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::lock_mutex;
use cronhold_store::{Fault, Hint, Obligation, Page, Pending, Query, Store, Unit, UnitReceipt, UnitRefusal, Wrapper};

use super::DeliberateBug;
use super::answers::{FirstBeats, falsify};
use crate::context::SimContext;
use crate::executor::TaskOwner;
use crate::random::SimRandom;

/// Clock error of every second node.
const WRONG_TIME: Span = Span::from_secs(20);

/// A store with a deliberate bug.
#[derive(Debug)]
pub(super) struct WrongStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) bug: DeliberateBug,
    /// The node that uses it.
    pub(super) node: NodeId,
    pub(super) first_beats: Mutex<FirstBeats>,
}

/// A connection on which a commit succeeds as soon as it is sent.
#[derive(Debug)]
pub(super) struct EagerReplyStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) context: SimContext,
    pub(super) owner: TaskOwner,
    pub(super) rng: SimRandom,
}

impl WrongStore {
    /// The unit as it is committed.
    async fn corrupt(&self, mut unit: Unit) -> Unit {
        match self.bug {
            DeliberateBug::NoCompare => self.skip_compare(&mut unit, |_| true).await,
            DeliberateBug::LateReports if is_report(&unit) => self.skip_compare(&mut unit, |_| true).await,
            DeliberateBug::IgnoredHeartbeats => {
                self.skip_compare(&mut unit, |key| matches!(key, RecordKey::Node(_))).await;
            }
            DeliberateBug::StolenLocks => self.free_taken(&mut unit).await,
            DeliberateBug::EarlyLockRelease => {
                let is_there = |run: &&Run| run.state == State::Running && run.lock.is_some();
                let freed: Vec<LockRelease> = written(&unit)
                    .filter(is_there)
                    .filter_map(|run| Some(LockRelease { lock: run.lock.clone()?, holder: run.id }))
                    .collect();
                unit.free.extend(freed);
            }
            DeliberateBug::NothingExpires => unit.changes.retain(|change| {
                let RecordChange::Delete(key) = change else { return true };
                matches!(key, RecordKey::Job(_) | RecordKey::Cursor(..) | RecordKey::Backlog(..))
            }),
            DeliberateBug::LostActions => {
                let compared = &unit.compare;
                unit.changes.retain(|change| match change {
                    RecordChange::Put(Record::Action(action)) => {
                        action.id.number % 3 != 1 || !compared.contains(&(RecordKey::Action(action.id), None))
                    }
                    _ => true,
                });
            }
            DeliberateBug::RepeatedTriggers if written(&unit).any(|run| !run.triggers.is_empty()) => {
                unit.changes.retain(|change| !matches!(change, RecordChange::Put(Record::Triggers(_))));
            }
            DeliberateBug::ForgottenLateness => {
                for change in &mut unit.changes {
                    if let RecordChange::Put(Record::Run(run)) = change
                        && run.state == State::Running
                    {
                        Arc::make_mut(run).late_at = None;
                    }
                }
            }
            DeliberateBug::UncountedOutcomes => {
                for change in &mut unit.changes {
                    match change {
                        RecordChange::Put(Record::Identity(identity)) => {
                            Arc::make_mut(identity).outcomes.streak = None;
                        }
                        RecordChange::Put(Record::JobState(state)) => {
                            if let Some(outcomes) = &mut Arc::make_mut(state).outcomes {
                                outcomes.streak = None;
                            }
                        }
                        _ => {}
                    }
                }
            }
            DeliberateBug::UnrecordedSkips => {
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

    /// Makes a unit expect the current versions of the records that `is_blind` selects.
    async fn skip_compare(&self, unit: &mut Unit, is_blind: impl Fn(&RecordKey) -> bool) {
        let keys: Vec<RecordKey> = unit.compare.iter().map(|(key, _)| key.clone()).collect();
        let Ok(found) = self.store.load(&keys).await else { return };
        for ((key, expected), found) in unit.compare.iter_mut().zip(found).filter(|((key, _), _)| is_blind(key)) {
            debug_assert!(!matches!(key, RecordKey::Lock(_)), "locks are not compared");
            *expected = found.map(|stored| stored.version);
        }
    }

    /// Releases the locks that the unit takes and other runs hold.
    async fn free_taken(&self, unit: &mut Unit) {
        let keys: Vec<RecordKey> = unit.take.iter().map(|take| RecordKey::Lock(take.lock.clone())).collect();
        let Ok(found) = self.store.load(&keys).await else { return };
        for stored in found.into_iter().flatten() {
            if let Record::Lock(held) = stored.record {
                unit.free.push(LockRelease { lock: held.name.clone(), holder: held.holder });
            }
        }
    }

    fn apply_bug(&self, stored: Option<StoredRecord>) -> Option<StoredRecord> {
        let mut beats = lock_mutex(&self.first_beats);
        falsify(self.bug, self.node, &mut beats, stored)
    }

    /// Whether the bug hides the results of a query.
    fn hides(&self, query: &Query) -> bool {
        match self.bug {
            DeliberateBug::NoRecovery => matches!(query, Query::Unfinished { .. } | Query::Backlogs { .. }),
            DeliberateBug::ForgottenActions => matches!(query, Query::PendingActions { .. }),
            DeliberateBug::ForgottenTriggers => matches!(query, Query::PendingTriggers { .. }),
            DeliberateBug::NoWatchdog => matches!(query, Query::Unfinished { node: Some(_), .. }),
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
            Ok(found.into_iter().map(|stored| self.apply_bug(stored)).collect())
        })
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        Box::pin(async move {
            let mut results = Vec::with_capacity(units.len());
            for unit in units {
                results.extend(self.store.commit(vec![self.corrupt(unit).await]).await);
            }
            if self.bug == DeliberateBug::ConstantFence {
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
        match self.bug {
            DeliberateBug::NoRecovery | DeliberateBug::NoWatchdog => Box::pin(async { Ok(Vec::new()) }),
            DeliberateBug::ForgottenActions => Box::pin(async move {
                let mut due = self.store.due(after, until, limit).await?;
                due.retain(|obligation| !matches!(obligation.key, RecordKey::Action(_)));
                Ok(due)
            }),
            DeliberateBug::ForgottenTriggers => Box::pin(async move {
                let mut due = self.store.due(after, until, limit).await?;
                due.retain(|obligation| !matches!(obligation.key, RecordKey::Triggers(_)));
                Ok(due)
            }),
            _ => self.store.due(after, until, limit),
        }
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        Box::pin(async move {
            if self.hides(query) {
                return Ok(Page::default());
            }
            let Page { records, unreadable, last } = self.store.page(query, limit).await?;
            let records = records.into_iter().filter_map(|stored| self.apply_bug(Some(stored))).collect();
            Ok(Page { records, unreadable, last })
        })
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        if self.bug == DeliberateBug::MissedWakes { Box::pin(pending()) } else { self.store.hints() }
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        let is_wrong = self.bug == DeliberateBug::WrongTime && self.node.bits().is_multiple_of(2);
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
        let replies = units.iter().map(|_| Ok(UnitReceipt::default())).collect();
        let (store, time, wait) = (Arc::clone(&self.store), self.context.time.clone(), self.rng.micros(10, 50_000));
        self.context.executor.spawn(self.owner, async move {
            time.sleep(wait).await;
            store.commit(units).await;
        });
        Box::pin(async move { replies })
    }
}

/// The runs that a unit writes.
fn written(unit: &Unit) -> impl Iterator<Item = &Run> {
    unit.changes.iter().filter_map(|change| match change {
        RecordChange::Put(Record::Run(run)) => Some(&**run),
        _ => None,
    })
}

/// Whether a unit writes the report of a program.
fn is_report(unit: &Unit) -> bool {
    written(unit).any(|run| run.log.last().is_some_and(|last| last.actor == Actor::Program))
}
