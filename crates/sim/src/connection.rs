//! The line from a machine to the store. A call takes effect at some moment between its sending and its answer, so a
//! crash or a pause can come before that moment, after it, or while nobody knows; and the weather decides what gets
//! lost.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::RunId;
use cronhold_core::record::{LockName, NodeRecord, RecordKey, StoredRecord};
use cronhold_schedule::Instant;
use cronhold_store::{
    Chunk, Fault, Hint, Obligation, Page, Pending, Query, Store, StoreHealthReport, Unit, UnitReceipt, UnitRefusal,
    WriterId,
};

use crate::chance::SimRandom;
use crate::check::DaemonChange;
use crate::context::SimContext;
use crate::executor::TaskOwner;
use crate::faults::{CallFate, FaultPlan};
use crate::hint_delivery::{HintBatch, HintDelivery};
use crate::reply_slot::ReplyBox;

/// The line of one life of a machine's daemon.
#[derive(Debug)]
pub(crate) struct StoreConnection {
    /// What is at its other end.
    pub(crate) store: Arc<dyn Store>,
    /// What the simulation shares.
    pub(crate) context: SimContext,
    /// What the way is like.
    pub(crate) fault_plan: FaultPlan,
    /// Its own chance.
    pub(crate) chance: SimRandom,
    /// Which machine.
    pub(crate) machine: usize,
    /// The name of the machine.
    pub(crate) who: String,
    /// Whether the daemon still lives.
    pub(crate) is_alive: Arc<AtomicBool>,
    /// Hints on their way.
    pub(crate) mail: HintDelivery,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    /// It only reads.
    Read,
    /// It writes, and this is what it is called.
    Write(&'static str),
}

impl StoreConnection {
    /// Sends a call and waits for its answer, for as long as the weather lets it.
    async fn call<T, F>(&self, kind: CallKind, work: F) -> Result<T, Fault>
    where
        T: Send + fmt::Debug + 'static,
        F: for<'s> FnOnce(&'s dyn Store) -> Pending<'s, Result<T, Fault>> + Send + 'static,
    {
        let answer = match self.fault_plan.fate(&self.chance) {
            CallFate::Fine => self.send(kind, work, false).take().await,
            CallFate::Stays => {
                self.context.time.sleep(self.fault_plan.delay(&self.chance, self.machine)).await;
                Err(Fault::Unavailable("no connection".to_owned()))
            }
            CallFate::Silent { patience, is_lost } => {
                self.send(kind, work, is_lost);
                self.context.time.sleep(patience).await;
                match kind {
                    CallKind::Read => Err(Fault::Unavailable("no answer in time".to_owned())),
                    CallKind::Write(_) => Err(Fault::OutcomeUnknown("no answer in time".to_owned())),
                }
            }
        };
        if answer.is_err() {
            self.context.turned(self.machine, DaemonChange::Disturbed);
        }
        if let (CallKind::Write(name), Err(fault)) = (kind, &answer) {
            self.context.say(&self.who, || format!("{name} fails: {fault}"));
        }
        answer
    }

    /// Sends a call on its way. From here on nothing that befalls the sender holds it up for sure.
    fn send<T, F>(&self, kind: CallKind, work: F, is_lost: bool) -> Arc<ReplyBox<Result<T, Fault>>>
    where
        T: Send + fmt::Debug + 'static,
        F: for<'s> FnOnce(&'s dyn Store) -> Pending<'s, Result<T, Fault>> + Send + 'static,
    {
        let letterbox = Arc::new(ReplyBox::default());
        let answer = Arc::clone(&letterbox);
        let (store, time, is_alive) = (Arc::clone(&self.store), self.context.time.clone(), Arc::clone(&self.is_alive));
        let (fault_plan, machine) = (self.fault_plan.clone(), self.machine);
        let (there, back) = (fault_plan.delay(&self.chance, machine), fault_plan.delay(&self.chance, machine));
        // What was sent to a store of its own dies with the sender; on a network it may still arrive.
        let outlives_sender = store.is_shared() && self.chance.one_in(2);
        self.context.executor.spawn(TaskOwner::Nobody, async move {
            time.sleep(there).await;
            if is_lost || !(is_alive.load(Ordering::Relaxed) || outlives_sender) {
                return;
            }
            let result = match fault_plan.refuses(machine, kind != CallKind::Read) {
                Some(fault) => Err(fault),
                None => work(&*store).await,
            };
            time.sleep(back).await;
            answer.put(result);
        });
        letterbox
    }
}

impl Store for StoreConnection {
    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>> {
        Box::pin(self.call(CallKind::Write("enrolling"), |store| store.enroll()))
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        let keys = keys.to_vec();
        Box::pin(self.call(CallKind::Read, move |store| Box::pin(async move { store.load(&keys).await })))
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        Box::pin(async move {
            let count = units.len();
            let answer = self
                .call(CallKind::Write("commit"), move |store| Box::pin(async move { Ok(store.commit(units).await) }));
            let answer = answer.await;
            answer.unwrap_or_else(|fault| (0..count).map(|_| Err(UnitRefusal::Fault(fault.clone()))).collect())
        })
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        let after = after.cloned();
        Box::pin(
            self.call(CallKind::Read, move |store| {
                Box::pin(async move { store.due(after.as_ref(), until, limit).await })
            }),
        )
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        let (asked, is_of_nodes) = (query.clone(), matches!(query, Query::Nodes { .. }));
        Box::pin(async move {
            let answer =
                self.call(CallKind::Read, move |store| Box::pin(async move { store.page(&asked, limit).await }));
            let page = answer.await?;
            if is_of_nodes {
                self.context.saw_nodes(self.machine);
            }
            Ok(page)
        })
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        let bytes = bytes.to_vec();
        Box::pin(self.call(CallKind::Write("append"), move |store| {
            Box::pin(async move { store.append(run, from, &bytes).await })
        }))
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        Box::pin(self.call(CallKind::Read, move |store| store.read(run, from, most)))
    }

    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>> {
        Box::pin(self.call(CallKind::Read, move |store| store.outputs(after, limit)))
    }

    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>> {
        let runs = runs.to_vec();
        Box::pin(self.call(CallKind::Write("dropping outputs"), move |store| {
            Box::pin(async move { store.drop_outputs(&runs).await })
        }))
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<LockName>, Fault>> {
        let (node, locks) = (node.clone(), locks.to_vec());
        Box::pin(
            self.call(CallKind::Write("beat"), move |store| Box::pin(async move { store.beat(&node, &locks).await })),
        )
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        let (chance, fault_plan, machine) = (&self.chance, &self.fault_plan, self.machine);
        Box::pin(self.mail.hints(&*self.store, &self.context.time, move |count| {
            let lost = (0..count).filter(|_| fault_plan.loses_hint(chance)).collect();
            let usual = fault_plan.delay(chance, machine);
            HintBatch { lost, delays: fault_plan.hints(chance).into_iter().map(|late| late.plus(usual)).collect() }
        }))
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        Box::pin(self.call(CallKind::Read, |store| store.time()))
    }

    fn health(&self) -> Pending<'_, StoreHealthReport> {
        self.store.health()
    }
}
