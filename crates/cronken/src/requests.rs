//! What the reconciler has to do: jobs and pauses that this node has changed, and requests of events. Requests are
//! merged, so that a requester never waits and the memory is bounded.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use cronhold_core::JobId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Actor, Record, RecordKey};
use cronhold_engine::{EngineEvent, EngineObserver};
use cronhold_store::lock_mutex;
use tokio::sync::Notify;

/// When more jobs than this have changed, all jobs are reconciled.
const JOBS_MAX: usize = 1_000;
/// When events name more definitions than this, all definitions are validated.
const NAMES_MAX: usize = 1_000;

/// Requests to the reconciler, merged into one until it takes them.
#[derive(Debug, Default)]
pub struct ReconcileRequests {
    pending: Mutex<PendingRequest>,
    notify: Notify,
}

/// What was requested since the reconciler took the last request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingRequest {
    /// Jobs that this node has changed, and whether Cronken's nodes know the change already.
    pub(crate) jobs: BTreeMap<JobId, bool>,
    /// Reconcile all jobs.
    pub(crate) all: bool,
    /// Also restore jobs that a `remove` event has removed.
    pub(crate) restore_removed: bool,
    /// Another node reconciles all jobs; check a little later that it has.
    pub(crate) check_soon: bool,
    /// This node has paused everything, or ended that pause.
    pub(crate) all_paused: Option<bool>,
    /// Cronken's nodes have received the event that changed the pause of everything.
    pub(crate) pause_known: bool,
    /// Names of definitions to validate; all definitions, when the list is empty.
    pub(crate) validation: Option<Vec<String>>,
}

impl ReconcileRequests {
    /// Reconciles all jobs, and restores those that a `remove` event has removed.
    pub(crate) fn reload(&self) {
        self.add(|pending| (pending.all, pending.restore_removed) = (true, true));
    }

    /// Reconciles the jobs whose definitions other programs have changed.
    pub(crate) fn reconcile_definitions(&self, names: Vec<String>) {
        self.add(|pending| {
            for name in names {
                match JobId::parse(&name) {
                    Ok(id) => drop(pending.jobs.entry(id).or_insert(true)),
                    // Only a complete reconciliation reports names that no job can have.
                    Err(_) => pending.all = true,
                }
            }
            pending.limit_jobs();
        });
    }

    /// Checks a little later that another node has reconciled all jobs.
    pub(crate) fn check_soon(&self) {
        self.add(|pending| pending.check_soon = true);
    }

    /// Validates definitions; all of them, when `names` is empty.
    pub(crate) fn validate(&self, names: Vec<String>) {
        self.add(|pending| match &mut pending.validation {
            Some(known) if known.is_empty() => {}
            Some(known) if names.is_empty() || known.len() + names.len() > NAMES_MAX => known.clear(),
            Some(known) => known.extend(names),
            none => *none = Some(names),
        });
    }

    /// Waits for a request and takes it.
    pub(crate) async fn next(&self) -> PendingRequest {
        loop {
            let pending = std::mem::take(&mut *self.pending());
            if pending != PendingRequest::default() {
                return pending;
            }
            self.notify.notified().await;
        }
    }

    fn add(&self, change: impl FnOnce(&mut PendingRequest)) {
        change(&mut self.pending());
        self.notify.notify_one();
    }

    fn pending(&self) -> MutexGuard<'_, PendingRequest> {
        lock_mutex(&self.pending)
    }

    fn add_change(&self, change: &RecordChange, is_known: bool) {
        let job = match change {
            RecordChange::Put(Record::Job(job)) => &job.id,
            RecordChange::Put(Record::JobState(state)) => &state.job,
            RecordChange::Delete(RecordKey::Job(job)) => job,
            // Every definition shows the pause of everything.
            RecordChange::Put(Record::Pause(pauses)) => {
                return self.add(|pending| {
                    pending.all = true;
                    pending.pause_known |= is_known;
                    pending.all_paused = if is_known { None } else { Some(pauses.is_paused()) };
                });
            }
            _ => return,
        };
        if job.is_ad_hoc() {
            return;
        }
        self.add(|pending| {
            let known = pending.jobs.entry(job.clone()).or_insert(true);
            *known &= is_known;
            pending.limit_jobs();
        });
    }
}

impl PendingRequest {
    fn limit_jobs(&mut self) {
        if self.jobs.len() > JOBS_MAX {
            self.jobs.clear();
            self.all = true;
        }
    }
}

impl EngineObserver for ReconcileRequests {
    /// Only operators, job files, events and the times of pauses change jobs and pauses. Changes that come from a definition are in the
    /// definition already.
    fn on_event(&self, news: &EngineEvent<'_>) {
        let EngineEvent::Committed { stamp, done } = news else { return };
        let is_known = match &stamp.actor {
            Actor::ForeignEvent => true,
            Actor::Operator(_) | Actor::JobFiles | Actor::Limit => false,
            _ => return,
        };
        done.changes.iter().for_each(|change| self.add_change(change, is_known));
    }
}
