//! Follows what Cronken's clients do with the shared store: receives their events, and reconciles jobs with their
//! definitions at the start, after each change on either side, and periodically. castle-cron has no events: there a
//! watch reports changed definitions, and servers that join and leave.
//!
//! The daemon gives the follower a thread of its own, because a reconciliation of many jobs takes longer than a run may
//! wait. Three tasks run side by side so that none delays another: receiving events, acting on them, and reconciling.

use std::sync::Arc;

use cronhold_core::command::Command;
use cronhold_core::record::{Actor, LockName};
use cronhold_core::{NodeId, RunId};
use cronhold_engine::{MachineClock, NodeHandle};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::{Fault, SharedEvent, Store, has_foreign_nodes};
use tokio::sync::{mpsc, oneshot};

use crate::event::outgoing_event;
use crate::event_handler::{EventHandler, StoreTimeCache};
use crate::reconciler::{AlreadyNotified, ReconcileResult, Reconciler};
use crate::report::{FollowerObserver, SharedJobReport};
use crate::requests::{PendingRequest, ReconcileRequests};
use crate::snapshot::JobScope;

/// How often the follower checks whether Cronken's nodes have come or gone.
const PULSE: Span = Span::from_millis(50);
/// Events that wait to be handled. The receiver waits when there are more.
const EVENTS_MAX: usize = 1_000;
/// How often one of the nodes reconciles all jobs, because events can be lost.
const RECONCILE_EVERY: Span = Span::from_secs(30);
/// When to reconcile again after something could not be done, or after another node should have done it.
const RETRY_AFTER: Span = Span::from_secs(1);
/// How long the lock of the node that reconciles all jobs lasts unless the node renews it.
const RECONCILER_TTL: Span = Span::from_secs(30);
/// How long other nodes do not validate while this one does.
const VALIDATION_TTL: Span = Span::from_secs(60);
/// The lock of validations. Other programs use it too.
const VALIDATION_LOCK: &str = "#cronhold/validation";
/// The lock of the node that periodically reconciles all jobs.
const RECONCILER_LOCK: &str = "#cronhold/shared jobs";

/// Follows what Cronken's clients do with the shared store.
#[derive(Debug)]
pub struct CronkenFollower {
    /// The shared store.
    pub store: Arc<dyn Store>,
    /// The node that carries out commands.
    pub node: NodeHandle,
    /// The id of that node.
    pub node_id: NodeId,
    /// Time zones that definitions can name.
    pub zones: Arc<ZoneRegistry>,
    /// Requests to reconcile. The node's feed adds to them when the node changes a job.
    pub requests: Arc<ReconcileRequests>,
    /// Receives the reports.
    pub observer: Arc<dyn FollowerObserver>,
}

impl CronkenFollower {
    /// Runs for ever. Signals `is_ready` after all jobs were reconciled for the first time. Returns at once if the store is
    /// not shared.
    pub async fn run(self, clock: &dyn MachineClock, is_ready: oneshot::Sender<()>) {
        if self.store.shared().is_none() {
            return;
        }
        let (sender, received) = mpsc::channel(EVENTS_MAX);
        let receiving = receive_events(&*self.store, sender);
        let handling = self.handle_events(received, clock);
        let reconciling = self.reconcile(clock, is_ready);
        let (definitions, nodes) = (self.receive_definition_changes(), self.report_nodes());
        tokio::join!(receiving, handling, reconciling, definitions, nodes);
    }

    /// Reconciles the jobs whose definitions other programs change.
    async fn receive_definition_changes(&self) {
        let Some(shared) = self.store.shared() else { return };
        loop {
            self.requests.reconcile_definitions(shared.definition_changes().await);
        }
    }

    /// Reports nodes that join and leave.
    async fn report_nodes(&self) {
        let Some(shared) = self.store.shared() else { return };
        loop {
            let change = shared.node_list_changes().await;
            self.observer.on_report(&SharedJobReport::NodeListChanged(change));
        }
    }

    async fn handle_events(&self, mut received: mpsc::Receiver<SharedEvent>, clock: &dyn MachineClock) {
        let handler = EventHandler {
            store: Arc::clone(&self.store),
            node: self.node.clone(),
            node_id: self.node_id,
            zones: Arc::clone(&self.zones),
            requests: Arc::clone(&self.requests),
            observer: Arc::clone(&self.observer),
            store_time: StoreTimeCache::default(),
        };
        while let Some(event) = received.recv().await {
            handler.handle(&event, clock).await;
        }
    }

    async fn reconcile(&self, clock: &dyn MachineClock, is_ready: oneshot::Sender<()>) {
        let mut reconciler = Reconciler::new(Arc::clone(&self.store), self.node.clone(), Arc::clone(&self.zones));
        let mut wait = self.first_reconciliation(&mut reconciler, clock).await;
        let _ = is_ready.send(());
        let mut had_foreign_nodes = reconciler.had_foreign_nodes;
        loop {
            let request = tokio::select! {
                biased;
                // Other rules apply to all definitions then.
                () = self.foreign_nodes_change(had_foreign_nodes, clock) => {
                    Some(PendingRequest { all: true, ..PendingRequest::default() })
                }
                request = self.requests.next() => Some(request),
                () = clock.sleep(wait) => None,
            };
            self.report_foreign_nodes(&mut had_foreign_nodes);
            let result = match request {
                Some(request) => self.serve(&mut reconciler, request).await,
                // A retry is not left to the node that reconciles periodically.
                None if wait < RECONCILE_EVERY || self.is_periodic_reconciler().await => {
                    reconciler.reconcile(&JobScope::All, false, &AlreadyNotified::default()).await
                }
                None => Ok(ReconcileResult::default()),
            };
            wait = self.report(&reconciler, result);
        }
    }

    /// Waits until Cronken's nodes come or go. The heartbeat of the node finds it out.
    async fn foreign_nodes_change(&self, had_foreign_nodes: bool, clock: &dyn MachineClock) {
        while has_foreign_nodes(&*self.store) == had_foreign_nodes {
            clock.sleep(PULSE).await;
        }
    }

    fn report_foreign_nodes(&self, had_foreign_nodes: &mut bool) {
        let has_foreign_nodes = has_foreign_nodes(&*self.store);
        if has_foreign_nodes != *had_foreign_nodes {
            *had_foreign_nodes = has_foreign_nodes;
            self.observer.on_report(&if has_foreign_nodes {
                SharedJobReport::ForeignNodesArrived
            } else {
                SharedJobReport::ForeignNodesLeft
            });
        }
    }

    /// Reconciles all jobs until the store works, so that the node does not start with outdated jobs. Returns when to
    /// reconcile again.
    async fn first_reconciliation(&self, reconciler: &mut Reconciler, clock: &dyn MachineClock) -> Span {
        loop {
            let result = reconciler.reconcile(&JobScope::All, false, &AlreadyNotified::default()).await;
            let is_over = !result.as_ref().is_err_and(Fault::is_transient);
            let wait = self.report(reconciler, result);
            if is_over {
                return wait;
            }
            clock.sleep(RETRY_AFTER).await;
        }
    }

    async fn serve(&self, reconciler: &mut Reconciler, request: PendingRequest) -> Result<ReconcileResult, Fault> {
        if let Some(names) = &request.validation {
            self.validate(reconciler, names).await?;
        }
        if request.all_paused == Some(true)
            && let Some(shared) = self.store.shared().filter(|shared| shared.has_foreign_nodes())
        {
            shared.send(&outgoing_event("pause", "all")).await?;
        }
        let known = request.jobs.iter().filter(|(_, is_known)| **is_known);
        let known = AlreadyNotified {
            jobs: known.map(|(id, _)| id.clone()).collect(),
            pauses: request.pause_known || request.all_paused.is_some(),
            all_resumed: request.all_paused == Some(false),
        };
        let mut result = ReconcileResult::default();
        if request.all {
            result = reconciler.reconcile(&JobScope::All, request.restore_removed, &known).await?;
        } else if !request.jobs.is_empty() {
            let scope = JobScope::Only(request.jobs.into_keys().collect());
            result = reconciler.reconcile(&scope, false, &known).await?;
        }
        result.retry_soon |= request.check_soon;
        Ok(result)
    }

    /// Validates definitions, unless another node does.
    async fn validate(&self, reconciler: &mut Reconciler, names: &[String]) -> Result<(), Fault> {
        let lock = LockName::parse(VALIDATION_LOCK).expect("the name is short");
        let holder = self.node.random_run_id();
        let hold = Command::AcquireLock { lock: lock.clone(), holder, ttl: VALIDATION_TTL };
        if let Err(refused) = self.node.request(Actor::ForeignDefinition, hold).await {
            self.observer.on_report(&SharedJobReport::NotValidated { reason: refused.to_string() });
            return Ok(());
        }
        let validated = reconciler.validate(names).await;
        let _ = self.node.request(Actor::ForeignDefinition, Command::ReleaseLock { lock, holder }).await;
        self.observer.on_report(&SharedJobReport::Validated { newly_invalid: validated? });
        Ok(())
    }

    /// Whether this node is the one that periodically reconciles all jobs. It becomes that node if no other one is.
    async fn is_periodic_reconciler(&self) -> bool {
        let lock = LockName::parse(RECONCILER_LOCK).expect("the name is short");
        let holder = RunId::from_key(Instant::EPOCH, &format!("looks at shared jobs on node {}", self.node_id));
        let hold = Command::AcquireLock { lock, holder, ttl: RECONCILER_TTL };
        let is_held = self.node.request(Actor::ForeignDefinition, hold).await.is_ok();
        if is_held {
            self.observer.on_commit();
        }
        is_held
    }

    /// Reports the result of a reconciliation. Returns when to reconcile again.
    fn report(&self, reconciler: &Reconciler, result: Result<ReconcileResult, Fault>) -> Span {
        self.observer.set_invalid_definitions(reconciler.invalid_definitions());
        match result {
            Ok(result) => {
                result.reports.iter().for_each(|report| self.observer.on_report(report));
                if result.retry_soon { RETRY_AFTER } else { RECONCILE_EVERY }
            }
            Err(fault) if fault.is_transient() => RETRY_AFTER,
            Err(fault) => {
                self.observer.on_report(&SharedJobReport::Unreadable { reason: fault.to_string() });
                RECONCILE_EVERY
            }
        }
    }
}

/// Receives events, also while others are handled.
async fn receive_events(store: &dyn Store, sender: mpsc::Sender<SharedEvent>) {
    let Some(shared) = store.shared() else { return };
    loop {
        for event in shared.events().await {
            if sender.send(event).await.is_err() {
                return;
            }
        }
    }
}
