//! Sends the heartbeats of a node. It runs beside the node's loop, so that a slow commit does not let locks expire. Each
//! heartbeat writes the node's record and renews its locks; once the store has answered, the leases of its programs are
//! extended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::record::{LockName, NodeRecord, RecordKey, Run};
use cronhold_schedule::{Instant, Span};
use cronhold_store::lock_mutex;
use cronhold_store::{Fault, all_nodes};

use crate::leases::ProgramLease;
use crate::ports::NodePorts;
use crate::queue::BoundedQueue;
use crate::race::{First, race};
use crate::skew::Skew;

/// The time between two heartbeats on a shared store, unless a lock has to be renewed more often.
const INTERVAL: Span = Span::from_secs(2);
/// The time between two heartbeats of a node that is alone.
const INTERVAL_ALONE: Span = Span::from_secs(60);
/// The shortest time between two heartbeats.
const INTERVAL_MIN: Span = Span::from_millis(250);
/// A node that misses this many heartbeats in a row counts as gone.
const MISSED_MAX: u64 = 3;
/// How long a heartbeat waits for the store's answer.
const TIMEOUT: Span = Span::from_secs(5);
/// The time between a heartbeat that failed and the next.
const RETRY_AFTER: Span = Span::from_millis(500);
/// A node whose last answered heartbeat is older than this starts nothing: other nodes may soon take it for gone.
const FRESH: Span = Span::from_secs(4);
/// Requests for an earlier heartbeat that may wait.
const EARLY_REQUESTS_MAX: usize = 8;

/// Sends the heartbeats of a node. Clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct Heartbeater {
    state: Arc<Mutex<HeartbeatState>>,
    /// Has an item when there are results that the node has not taken.
    results_ready: BoundedQueue<()>,
    /// Requests that the next heartbeat comes within a time.
    early_requests: BoundedQueue<Span>,
    is_shared: bool,
}

#[derive(Debug)]
struct HeartbeatState {
    record: NodeRecord,
    /// When the last heartbeat was sent that the store has answered.
    answered: Option<Span>,
    /// The store's time at an uptime, on a shared store.
    store_time: Option<(Span, Instant)>,
    leases: BTreeMap<RunId, ProgramLease>,
    /// Locks that the node holds without a run.
    held_locks: BTreeMap<LockName, HeldLock>,
    results: Option<HeartbeatResult>,
    is_silenced: bool,
}

#[derive(Debug, Clone, Copy)]
struct HeldLock {
    holder: RunId,
    ttl: Span,
}

/// The results of heartbeats that the node has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct HeartbeatResult {
    /// When the store's time was requested and received, and the time.
    pub(crate) time: Option<(Span, Span, Instant)>,
    /// When the list of nodes was requested and received, and the list.
    pub(crate) nodes: Option<(Span, Span, Vec<Arc<NodeRecord>>)>,
    /// How far the node's own clock is off.
    pub(crate) skew: Option<Skew>,
    /// Runs whose locks are lost.
    pub(crate) lost: Vec<RunId>,
    /// Why the last heartbeat failed; `None` if it did not.
    pub(crate) fault: Option<Fault>,
}

impl Heartbeater {
    pub(crate) fn new(record: NodeRecord, is_shared: bool) -> Self {
        let state = HeartbeatState {
            record,
            answered: None,
            store_time: None,
            leases: BTreeMap::new(),
            held_locks: BTreeMap::new(),
            results: None,
            is_silenced: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            results_ready: BoundedQueue::new(1),
            early_requests: BoundedQueue::new(EARLY_REQUESTS_MAX),
            is_shared,
        }
    }

    /// Sends heartbeats until it is dropped.
    pub(crate) async fn run(&self, ports: &NodePorts) {
        let mut next = ports.clock.uptime().plus(self.interval());
        loop {
            let wait = next.minus(ports.clock.uptime());
            if let First::Left(()) = race(self.early_requests.ready(), ports.clock.sleep(wait)).await {
                let soonest = self.early_requests.take(EARLY_REQUESTS_MAX).into_iter().min().unwrap_or(wait);
                next = next.min(ports.clock.uptime().plus(soonest));
                continue;
            }
            let begin = ports.clock.uptime();
            let fault = match race(self.send_heartbeat(ports), ports.clock.sleep(TIMEOUT)).await {
                First::Left(sent) => sent.err(),
                First::Right(()) => Some(Fault::Unavailable(format!("no reply within {TIMEOUT}"))),
            };
            let wait = if fault.is_some() { RETRY_AFTER.min(self.interval()) } else { self.interval() };
            self.report_result(fault);
            next = begin.plus(wait);
        }
    }

    /// Sends one heartbeat.
    pub(crate) async fn send_heartbeat(&self, ports: &NodePorts) -> Result<(), Fault> {
        if self.is_shared {
            // The list is read before the record is written, which would hide that another process has this identity.
            self.request_nodes(ports).await?;
        }
        let sent = ports.clock.uptime();
        let (record, locks) = self.next_heartbeat(ports);
        let lost = ports.store.beat(&record, &locks).await?;
        let leases = self.record_answer(sent, &lost, &locks, ports.clock.uptime());
        if !leases.is_empty() {
            ports.programs.extend(&leases);
        }
        if self.is_shared {
            self.request_time(ports).await?;
        }
        Ok(())
    }

    /// Writes with the next heartbeat, which comes at once, why the keeper of the node cannot start programs.
    pub(crate) fn set_keeper_problem(&self, problem: Option<&str>) {
        self.lock().record.keeper_problem = problem.map(str::to_owned);
        self.send_soon();
    }

    /// Writes with further heartbeats whether the node drains. The store keeps its own flag while it has the record; this
    /// one counts if the store has lost the record.
    pub(crate) fn set_draining(&self, draining: bool) {
        self.lock().record.draining = draining;
    }

    /// Stops writing the node's record at shutdown, because another process has the node's identity.
    pub(crate) fn silence(&self) {
        self.lock().is_silenced = true;
    }

    /// Writes to the node's record that it is gone, so that other nodes need not wait to notice.
    pub(crate) async fn announce_shutdown(&self, ports: &NodePorts) {
        if !self.is_shared || self.lock().is_silenced {
            return;
        }
        let (mut record, _) = self.next_heartbeat(ports);
        record.gone = record.beat;
        // If this fails, other nodes notice after a few missed heartbeats.
        let _ = ports.store.beat(&record, &[]).await;
    }

    async fn request_time(&self, ports: &NodePorts) -> Result<(), Fault> {
        let requested = ports.clock.uptime();
        let time = ports.store.time().await?;
        let (received, clock) = (ports.clock.uptime(), ports.clock.now());
        let skew = Skew::new(requested, received, time, clock);
        let mut state = self.lock();
        state.store_time = Some((received, time));
        // The next heartbeat publishes it.
        state.record.skew = Some(skew.published(state.record.skew));
        let results = state.results.get_or_insert_default();
        (results.time, results.skew) = (Some((requested, received, time)), Some(skew));
        Ok(())
    }

    async fn request_nodes(&self, ports: &NodePorts) -> Result<(), Fault> {
        let requested = ports.clock.uptime();
        let nodes = all_nodes(&*ports.store).await?;
        let received = ports.clock.uptime();
        self.lock().results.get_or_insert_default().nodes = Some((requested, received, nodes));
        Ok(())
    }

    /// The record that the next heartbeat writes, and the locks that it renews.
    fn next_heartbeat(&self, ports: &NodePorts) -> (NodeRecord, Vec<(LockName, RunId)>) {
        let interval = self.interval();
        let mut state = self.lock();
        let now = match state.store_time {
            Some((at, time)) => time.plus(ports.clock.uptime().minus(at)),
            None => ports.clock.now(),
        };
        // Other nodes recognise a heartbeat by its time, so each must differ from the one before.
        let last = state.record.beat;
        state.record.beat = if now == last { last.plus(Span::from_micros(1)) } else { now };
        let missed = Span::from_micros(interval.max(INTERVAL).micros() * MISSED_MAX);
        state.record.gone = state.record.beat.plus(missed);
        let of_runs = state.leases.iter().filter_map(|(run, lease)| Some((lease.lock()?.clone(), *run)));
        let held = state.held_locks.iter().map(|(lock, held)| (lock.clone(), held.holder));
        (state.record.clone(), of_runs.chain(held).collect())
    }

    /// Records the store's answer to a heartbeat. Returns the leases to extend.
    fn record_answer(
        &self,
        sent: Span,
        lost: &[(LockName, RunId)],
        renewed: &[(LockName, RunId)],
        uptime: Span,
    ) -> Vec<(RunId, Span)> {
        let mut state = self.lock();
        let HeartbeatState { answered, leases, held_locks, results, .. } = &mut *state;
        *answered = Some(answered.map_or(sent, |before| before.max(sent)));
        for (lock, run) in renewed {
            // Another run of this node may hold the same lock.
            let is_lost = lost.iter().any(|(name, holder)| name == lock && holder == run);
            if is_lost && held_locks.get(lock).is_some_and(|held| held.holder == *run) {
                held_locks.remove(lock);
            }
            let Some(lease) = leases.get_mut(run) else { continue };
            if is_lost {
                results.get_or_insert_default().lost.push(*run);
            } else {
                lease.record_renewal(sent);
            }
        }
        let answered = *answered;
        let extended =
            |(run, lease): (&RunId, &mut ProgramLease)| Some((*run, lease.extend_if_short(answered, uptime)?));
        leases.iter_mut().filter_map(extended).collect()
    }

    /// Grants a lease to the program of a run whose commit was sent at an uptime. Returns the uptime at which the program
    /// has to be killed unless the lease is extended; `None` if it needs no lease.
    pub(crate) fn grant_lease(&self, run: &Run, sent: Span) -> Option<Span> {
        let span = run.terms.lease.filter(|_| self.is_shared)?;
        let mut state = self.lock();
        let mut lease = ProgramLease::new(span, run.lock.clone());
        lease.record_renewal(sent);
        let kill_at = lease.extend(state.answered);
        let lock_ttl = lease.lock_ttl();
        state.leases.insert(run.id, lease);
        drop(state);
        self.renew_within(lock_ttl);
        kill_at
    }

    /// Takes over the lease of a program that an earlier process of this node may have started. It is extended with the
    /// next heartbeat, which comes at once, because it is unknown when that process has ended.
    pub(crate) fn adopt_lease(&self, run: &Run) {
        let Some(span) = run.terms.lease.filter(|_| self.is_shared) else { return };
        self.lock().leases.entry(run.id).or_insert_with(|| ProgramLease::new(span, run.lock.clone()));
        self.send_soon();
    }

    /// Ends the lease of a run that has no program here any more.
    pub(crate) fn end_lease(&self, run: RunId) {
        self.lock().leases.remove(&run);
    }

    /// Records the locks that a commit has taken and released for the node itself. Locks of runs are renewed with the
    /// leases of their programs, and marks are left to expire.
    pub(crate) fn record_locks(&self, take: &[LockTake], free: &[LockRelease], changes: &[RecordChange]) {
        for free in free {
            self.lock().held_locks.remove(&free.lock);
        }
        for take in take {
            let is_of_run = changes.iter().any(|change| change.key() == RecordKey::Run(take.holder));
            if let Some(ttl) = take.ttl.filter(|_| !is_of_run && !take.lock.is_mark()) {
                self.lock().held_locks.insert(take.lock.clone(), HeldLock { holder: take.holder, ttl });
                self.renew_within(Some(ttl));
            }
        }
    }

    /// Requests that the next heartbeat comes in time for a lock with this ttl.
    fn renew_within(&self, ttl: Option<Span>) {
        if let Some(ttl) = ttl {
            // If the queue is full, the heartbeat that its requests cause sees this lock too.
            let _ = self.early_requests.try_send(interval_for(Some(ttl)));
        }
    }

    /// Requests a heartbeat at once.
    pub(crate) fn send_soon(&self) {
        let _ = self.early_requests.try_send(Span::ZERO);
    }

    /// Waits until there are results.
    pub(crate) async fn results_ready(&self) {
        self.results_ready.ready().await;
    }

    /// The results of heartbeats since the last call.
    pub(crate) fn take_results(&self) -> Option<HeartbeatResult> {
        self.results_ready.take(1);
        self.lock().results.take()
    }

    /// Whether the store has answered a heartbeat so recently that the node may start something.
    pub(crate) fn is_fresh(&self, uptime: Span) -> bool {
        !self.is_shared || self.lock().answered.is_some_and(|answered| uptime.minus(answered) < FRESH)
    }

    fn interval(&self) -> Span {
        if !self.is_shared {
            return INTERVAL_ALONE;
        }
        let state = self.lock();
        let locks = state.leases.values().filter_map(ProgramLease::lock_ttl);
        let shortest = locks.chain(state.held_locks.values().map(|held| held.ttl)).min();
        interval_for(shortest)
    }

    fn report_result(&self, fault: Option<Fault>) {
        self.lock().results.get_or_insert_default().fault = fault;
        let _ = self.results_ready.try_send(());
    }

    fn lock(&self) -> MutexGuard<'_, HeartbeatState> {
        lock_mutex(&self.state)
    }
}

/// The time between two heartbeats of a node whose shortest lock has this ttl.
fn interval_for(shortest: Option<Span>) -> Span {
    shortest.map_or(INTERVAL, |ttl| Span::from_micros(ttl.micros() / 3)).clamp(INTERVAL_MIN, INTERVAL)
}

#[cfg(test)]
mod tests {
    use cronhold_core::NodeId;

    use super::*;

    /// The node may not have learnt yet that the first run has lost the lock, and has started another one under it.
    #[test]
    fn lost_lock_of_one_run_does_not_affect_another_run_with_the_same_lock() {
        let heartbeater = Heartbeater::new(NodeRecord::new(NodeId::from_bits(1), "one", 1, Instant::EPOCH), true);
        let lock = LockName::parse("l").expect("a name");
        let [stale, current] = ["a", "b"].map(|key| RunId::from_key(Instant::EPOCH, key));
        for run in [stale, current] {
            let lease = ProgramLease::new(Span::from_secs(10), Some(lock.clone()));
            heartbeater.lock().leases.insert(run, lease);
        }
        let renewed = [stale, current].map(|run| (lock.clone(), run));
        let sent = Span::from_secs(100);
        heartbeater.record_answer(sent, &[(lock, stale)], &renewed, sent);
        assert_eq!(heartbeater.take_results().map(|results| results.lost), Some(vec![stale]));
    }
}
