//! The connection from a machine to the store. A call takes effect at some moment between its request and its reply, so
//! that a crash or a pause can come before, during or after it. The fault plan decides which requests and replies are
//! lost.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::RunId;
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey, RecordKind, StoredRecord};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{
    Chunk, Fault, Hint, Obligation, OutputSizes, Page, Pending, Query, Store, StoreHealthReport, StoreLimits, Unit,
    UnitReceipt, UnitRefusal, WalkPage, WalkPlace, WriterId,
};

use crate::check::DaemonChange;
use crate::context::SimContext;
use crate::executor::TaskOwner;
use crate::faults::{CallFate, FaultPlan};
use crate::hint_delivery::{HintBatch, HintDelivery};
use crate::random::SimRandom;
use crate::reply_slot::ReplyBox;
use crate::rollback::RollbackClient;

/// The connection of one daemon process.
#[derive(Debug)]
pub(crate) struct StoreConnection {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) context: SimContext,
    pub(crate) fault_plan: FaultPlan,
    pub(crate) rng: SimRandom,
    pub(crate) machine: usize,
    /// The name of the machine, for the trace.
    pub(crate) source: String,
    /// Whether the daemon process is still running.
    pub(crate) is_alive: Arc<AtomicBool>,
    /// Hints in transit.
    pub(crate) hint_delivery: HintDelivery,
    /// What the process remembers, if the store can be rolled back.
    pub(crate) rollback: Option<RollbackClient>,
}

/// Whether a call reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    Read,
    /// Writes. The text names the call in the trace.
    Write(&'static str),
}

impl StoreConnection {
    /// Sends a call and waits for its reply or for the fault that the plan draws.
    pub(crate) async fn call<T, F>(&self, kind: CallKind, work: F) -> Result<T, Fault>
    where
        T: Send + fmt::Debug + 'static,
        F: for<'s> FnOnce(&'s dyn Store) -> Pending<'s, Result<T, Fault>> + Send + 'static,
    {
        let reply = match self.fault_plan.fate(&self.rng) {
            CallFate::Delivered => self.send(kind, work, false).take().await,
            CallFate::NotSent => {
                self.context.time.sleep(self.fault_plan.delay(&self.rng, self.machine)).await;
                Err(Fault::Unavailable("no connection".to_owned()))
            }
            CallFate::ReplyLost { timeout, is_lost } => {
                self.send(kind, work, is_lost);
                self.context.time.sleep(timeout).await;
                match kind {
                    CallKind::Read => Err(Fault::Unavailable("request timed out".to_owned())),
                    CallKind::Write(_) => Err(Fault::OutcomeUnknown("request timed out".to_owned())),
                }
            }
        };
        if reply.is_err() {
            self.context.daemon_changed(self.machine, DaemonChange::Disturbed);
        }
        if let (CallKind::Write(name), Err(fault)) = (kind, &reply) {
            self.context.log(&self.source, || format!("{name} fails: {fault}"));
        }
        reply
    }

    /// Reports a call or a hint that takes longer than usual.
    fn report_delay(&self, longest: Span, all: Span) {
        if longest > self.context.usual {
            let until = self.context.time.now().plus(all);
            self.context.daemon_changed(self.machine, DaemonChange::SlowCall { until });
        }
    }

    /// Sends a call. From here on it is independent of the sender, which may crash.
    fn send<T, F>(&self, kind: CallKind, work: F, is_lost: bool) -> Arc<ReplyBox<Result<T, Fault>>>
    where
        T: Send + fmt::Debug + 'static,
        F: for<'s> FnOnce(&'s dyn Store) -> Pending<'s, Result<T, Fault>> + Send + 'static,
    {
        let slot = Arc::new(ReplyBox::default());
        let reply = Arc::clone(&slot);
        let (store, time, is_alive) = (Arc::clone(&self.store), self.context.time.clone(), Arc::clone(&self.is_alive));
        let (fault_plan, machine) = (self.fault_plan.clone(), self.machine);
        let (there, back) = (fault_plan.delay(&self.rng, machine), fault_plan.delay(&self.rng, machine));
        self.report_delay(there.max(back), there.plus(back));
        // A call to a local store dies with its sender; on a network it may still arrive.
        let outlives_sender = store.is_shared() && self.rng.one_in(2);
        self.context.executor.spawn(TaskOwner::Detached, async move {
            time.sleep(there).await;
            if is_lost || !(is_alive.load(Ordering::Relaxed) || outlives_sender) {
                return;
            }
            let result = match fault_plan.refuses(machine, kind != CallKind::Read) {
                Some(fault) => Err(fault),
                None => work(&*store).await,
            };
            time.sleep(back).await;
            reply.put(result);
        });
        slot
    }
}

impl Store for StoreConnection {
    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>> {
        match &self.rollback {
            Some(client) => Box::pin(self.enroll_tracked(client)),
            None => Box::pin(self.call(CallKind::Write("enrolling"), |store| store.enroll())),
        }
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
            if let Some(client) = &self.rollback {
                return self.commit_tracked(client, units).await;
            }
            let count = units.len();
            let reply = self
                .call(CallKind::Write("commit"), move |store| Box::pin(async move { Ok(store.commit(units).await) }));
            let reply = reply.await;
            reply.unwrap_or_else(|fault| (0..count).map(|_| Err(UnitRefusal::Fault(fault.clone()))).collect())
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
        let (request, is_of_nodes) = (query.clone(), matches!(query, Query::Nodes { .. }));
        Box::pin(async move {
            let reply =
                self.call(CallKind::Read, move |store| Box::pin(async move { store.page(&request, limit).await }));
            let page = reply.await?;
            if is_of_nodes {
                self.context.received_nodes(self.machine);
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

    fn output_sizes<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<OutputSizes, Fault>> {
        let runs = runs.to_vec();
        Box::pin(self.call(CallKind::Read, move |store| Box::pin(async move { store.output_sizes(&runs).await })))
    }

    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>> {
        let runs = runs.to_vec();
        Box::pin(self.call(CallKind::Write("dropping outputs"), move |store| {
            Box::pin(async move { store.drop_outputs(&runs).await })
        }))
    }

    fn expire_locks(&self, before: Instant) -> Pending<'_, Result<(), Fault>> {
        Box::pin(self.call(CallKind::Write("expiring locks"), move |store| store.expire_locks(before)))
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>> {
        let (node, locks) = (node.clone(), locks.to_vec());
        if let Some(client) = &self.rollback {
            return Box::pin(self.beat_tracked(client, node, locks));
        }
        Box::pin(
            self.call(CallKind::Write("beat"), move |store| Box::pin(async move { store.beat(&node, &locks).await })),
        )
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        let (rng, fault_plan, machine) = (&self.rng, &self.fault_plan, self.machine);
        Box::pin(self.hint_delivery.hints(&*self.store, &self.context.time, move |count| {
            let lost: Vec<usize> = (0..count).filter(|_| fault_plan.loses_hint(rng)).collect();
            let (usual, late) = (fault_plan.delay(rng, machine), fault_plan.hints(rng));
            self.report_delay(usual, usual);
            if !lost.is_empty() || late.first() != Some(&Span::ZERO) {
                self.context.daemon_changed(machine, DaemonChange::HintLost);
            }
            HintBatch { lost, delays: late.into_iter().map(|late| late.plus(usual)).collect() }
        }))
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        Box::pin(self.call(CallKind::Read, |store| store.time()))
    }

    fn limits(&self) -> StoreLimits {
        self.store.limits()
    }

    fn record_size(&self, record: &Record) -> u64 {
        self.store.record_size(record)
    }

    fn walk<'a>(
        &'a self,
        kind: RecordKind,
        from: Option<&'a WalkPlace>,
        limit: usize,
    ) -> Pending<'a, Result<WalkPage, Fault>> {
        let from = from.cloned();
        Box::pin(
            self.call(CallKind::Read, move |store| {
                Box::pin(async move { store.walk(kind, from.as_ref(), limit).await })
            }),
        )
    }

    fn seal<'a>(&'a self, reason: &'a str) -> Pending<'a, Result<(), Fault>> {
        let reason = reason.to_owned();
        Box::pin(self.call(CallKind::Write("seal"), move |store| Box::pin(async move { store.seal(&reason).await })))
    }

    fn unseal(&self) -> Pending<'_, Result<(), Fault>> {
        Box::pin(self.call(CallKind::Write("unseal"), |store| store.unseal()))
    }

    fn health(&self) -> Pending<'_, StoreHealthReport> {
        self.store.health()
    }
}
