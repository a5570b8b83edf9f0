//! How a node says that it is alive, beside everything else it does: a commit that takes long must not let its locks run
//! out. With each beat its locks are renewed, and the leases of its programs are extended once the store has said yes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cronhold_core::RunId;
use cronhold_core::record::{LockName, Node as NodeRecord, Run};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, all_nodes};

use crate::leases::Lease;
use crate::ports::Ports;
use crate::queue::Queue;
use crate::race::{First, race};
use crate::skew::Skew;

/// Time between two beats where others listen, unless a lock needs more.
const EVERY: Span = Span::from_secs(2);
/// Time between two beats of a node that is alone.
const EVERY_ALONE: Span = Span::from_secs(60);
/// Nobody beats more often than this.
const EVERY_MIN: Span = Span::from_millis(250);
/// A node that misses so many beats in a row counts as gone.
const BEATS_MISSED_MAX: u64 = 3;
/// A beat that was not answered by then is given up; the next may be.
const PATIENCE: Span = Span::from_secs(5);
/// After a beat that failed the next comes sooner.
const AGAIN: Span = Span::from_millis(500);
/// A node whose last answered beat is older than this starts nothing: others may believe soon that it is gone.
const FRESH: Span = Span::from_secs(4);
/// Wishes for a sooner beat that may wait.
const HURRIES_MAX: usize = 8;

/// The beacon of a node. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Beacon {
    inner: Arc<Mutex<Inner>>,
    /// Rings when something was heard.
    pub(crate) heard: Queue<()>,
    /// Says when the next beat has to come sooner: within this time.
    hurry: Queue<Span>,
    is_shared: bool,
}

#[derive(Debug)]
struct Inner {
    record: NodeRecord,
    /// When the last beat was sent that the store has answered.
    answered: Option<Span>,
    /// The store's time at an uptime, where that is the time to go by.
    time: Option<(Span, Instant)>,
    leases: BTreeMap<RunId, Lease>,
    /// Locks that the node holds without a run.
    held: BTreeMap<LockName, Held>,
    beaten: Option<Beaten>,
    is_dark: bool,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    holder: RunId,
    ttl: Span,
}

/// What came of beats that the node has not looked at yet.
#[derive(Debug, Default)]
pub(crate) struct Beaten {
    /// When the store was asked for its time and answered, and what it said.
    pub(crate) time: Option<(Span, Span, Instant)>,
    /// When it was asked for nodes and answered, and what it said.
    pub(crate) nodes: Option<(Span, Span, Vec<Arc<NodeRecord>>)>,
    /// How far the clock on the wall is off.
    pub(crate) skew: Option<Skew>,
    /// Runs whose locks are lost.
    pub(crate) lost: Vec<RunId>,
    /// Why the last one failed, if it did.
    pub(crate) fault: Option<Fault>,
}

impl Beacon {
    pub(crate) fn new(record: NodeRecord, is_shared: bool) -> Self {
        let inner = Inner {
            record,
            answered: None,
            time: None,
            leases: BTreeMap::new(),
            held: BTreeMap::new(),
            beaten: None,
            is_dark: false,
        };
        Self { inner: Arc::new(Mutex::new(inner)), heard: Queue::new(1), hurry: Queue::new(HURRIES_MAX), is_shared }
    }

    /// Beats for ever.
    pub(crate) async fn shine(&self, ports: &Ports) {
        let mut next = ports.clock.uptime().plus(self.every());
        loop {
            let wait = next.minus(ports.clock.uptime());
            if let First::Left(()) = race(self.hurry.ready(), ports.clock.sleep(wait)).await {
                let soonest = self.hurry.take(HURRIES_MAX).into_iter().min().unwrap_or(wait);
                next = next.min(ports.clock.uptime().plus(soonest));
                continue;
            }
            let begin = ports.clock.uptime();
            let fault = match race(self.beat(ports), ports.clock.sleep(PATIENCE)).await {
                First::Left(done) => done.err(),
                First::Right(()) => Some(Fault::Away(format!("no answer within {PATIENCE}"))),
            };
            let wait = if fault.is_some() { AGAIN.min(self.every()) } else { self.every() };
            self.tell(fault);
            next = begin.plus(wait);
        }
    }

    /// Beats once.
    pub(crate) async fn beat(&self, ports: &Ports) -> Result<(), Fault> {
        if self.is_shared {
            // Before it beats, because its beat would hide that another daemon has its identity.
            self.look_around(ports).await?;
        }
        let sent = ports.clock.uptime();
        let (record, locks) = self.prepare(ports);
        let lost = ports.store.beat(&record, &locks).await?;
        let leases = self.answered(sent, &lost, &locks, ports.clock.uptime());
        if !leases.is_empty() {
            ports.outside.extend(&leases);
        }
        if self.is_shared {
            self.ask_time(ports).await?;
        }
        Ok(())
    }

    /// Another daemon has the node's identity: nothing is said in its name any more.
    pub(crate) fn go_dark(&self) {
        self.lock().is_dark = true;
    }

    /// Says that the node is gone, so that nobody waits for it.
    pub(crate) async fn farewell(&self, ports: &Ports) {
        if !self.is_shared || self.lock().is_dark {
            return;
        }
        let (mut record, _) = self.prepare(ports);
        record.gone = record.beat;
        // Whoever does not hear it notices by itself.
        let _ = ports.store.beat(&record, &[]).await;
    }

    /// Asks the store for its time.
    async fn ask_time(&self, ports: &Ports) -> Result<(), Fault> {
        let asked = ports.clock.uptime();
        let time = ports.store.time().await?;
        let (heard, wall) = (ports.clock.uptime(), ports.clock.now());
        let skew = Skew::new(asked, heard, time, wall);
        let mut inner = self.lock();
        inner.time = Some((heard, time));
        // Others hear of it with the next beat.
        inner.record.skew = Some(skew.told(inner.record.skew));
        let beaten = inner.beaten.get_or_insert_default();
        (beaten.time, beaten.skew) = (Some((asked, heard, time)), Some(skew));
        Ok(())
    }

    async fn look_around(&self, ports: &Ports) -> Result<(), Fault> {
        let asked = ports.clock.uptime();
        let nodes = all_nodes(&*ports.store).await?;
        let heard = ports.clock.uptime();
        self.lock().beaten.get_or_insert_default().nodes = Some((asked, heard, nodes));
        Ok(())
    }

    /// What the next beat says, and the locks that it renews.
    fn prepare(&self, ports: &Ports) -> (NodeRecord, Vec<(LockName, RunId)>) {
        let every = self.every();
        let mut inner = self.lock();
        let now = match inner.time {
            Some((at, time)) => time.plus(ports.clock.uptime().minus(at)),
            None => ports.clock.now(),
        };
        // Each beat differs from the one before, because that is how others see that there was one.
        let last = inner.record.beat;
        inner.record.beat = if now == last { last.plus(Span::from_micros(1)) } else { now };
        let missed = Span::from_micros(every.max(EVERY).micros() * BEATS_MISSED_MAX);
        inner.record.gone = inner.record.beat.plus(missed);
        let of_runs = inner.leases.iter().filter_map(|(run, lease)| Some((lease.lock()?.clone(), *run)));
        let held = inner.held.iter().map(|(lock, held)| (lock.clone(), held.holder));
        (inner.record.clone(), of_runs.chain(held).collect())
    }

    /// The store has answered a beat. Answers with the leases that are worth telling.
    fn answered(
        &self,
        sent: Span,
        lost: &[LockName],
        renewed: &[(LockName, RunId)],
        uptime: Span,
    ) -> Vec<(RunId, Span)> {
        let mut inner = self.lock();
        let Inner { answered, leases, held, beaten, .. } = &mut *inner;
        *answered = Some(answered.map_or(sent, |before| before.max(sent)));
        for (lock, run) in renewed {
            let is_lost = lost.contains(lock);
            if is_lost && held.get(lock).is_some_and(|held| held.holder == *run) {
                held.remove(lock);
            }
            let Some(lease) = leases.get_mut(run) else { continue };
            if is_lost {
                beaten.get_or_insert_default().lost.push(*run);
            } else {
                lease.taken(sent);
            }
        }
        let answered = *answered;
        let worth = |(run, lease): (&RunId, &mut Lease)| Some((*run, lease.worth_telling(answered, uptime)?));
        leases.iter_mut().filter_map(worth).collect()
    }

    /// A run gets a program here, by a commit that was sent then. Answers until when the program may live, if there is a
    /// limit.
    pub(crate) fn lend(&self, run: &Run, sent: Span) -> Option<Span> {
        let span = run.terms.lease.filter(|_| self.is_shared)?;
        let mut inner = self.lock();
        let mut lease = Lease::new(span, run.lock.clone());
        lease.taken(sent);
        let kill_at = lease.tell(inner.answered);
        let renewed_within = lease.of_lock();
        inner.leases.insert(run.id, lease);
        drop(inner);
        self.renew_within(renewed_within);
        kill_at
    }

    /// A program of an earlier life may be here: its lease is extended with the next beat, which comes at once, because
    /// nobody knows how long ago that life ended.
    pub(crate) fn take_over(&self, run: &Run) {
        let Some(span) = run.terms.lease.filter(|_| self.is_shared) else { return };
        self.lock().leases.entry(run.id).or_insert_with(|| Lease::new(span, run.lock.clone()));
        self.hurry();
    }

    /// Sees to it that the next beat comes in time for a lock that lasts so long. When beats come as often as that
    /// already, nothing changes.
    fn renew_within(&self, ttl: Option<Span>) {
        if let Some(ttl) = ttl {
            // When so many wishes wait there is one for this already.
            let _ = self.hurry.offer(every(Some(ttl)));
        }
    }

    /// A run has no program here any more.
    pub(crate) fn end(&self, run: RunId) {
        self.lock().leases.remove(&run);
    }

    /// The node holds a lock without a run.
    pub(crate) fn hold(&self, lock: LockName, holder: RunId, ttl: Span) {
        self.lock().held.insert(lock, Held { holder, ttl });
        self.renew_within(Some(ttl));
    }

    /// It does not any more.
    pub(crate) fn let_go(&self, lock: &LockName) {
        self.lock().held.remove(lock);
    }

    /// What came of beats since it was last asked.
    pub(crate) fn take(&self) -> Option<Beaten> {
        self.heard.take(1);
        self.lock().beaten.take()
    }

    /// Whether the node was heard of so lately that it may start something.
    pub(crate) fn is_fresh(&self, uptime: Span) -> bool {
        !self.is_shared || self.lock().answered.is_some_and(|answered| uptime.minus(answered) < FRESH)
    }

    /// The next beat comes at once.
    pub(crate) fn hurry(&self) {
        let _ = self.hurry.offer(Span::ZERO);
    }

    fn every(&self) -> Span {
        if !self.is_shared {
            return EVERY_ALONE;
        }
        let inner = self.lock();
        let locks = inner.leases.values().filter_map(Lease::of_lock);
        let shortest = locks.chain(inner.held.values().map(|held| held.ttl)).min();
        every(shortest)
    }

    fn tell(&self, fault: Option<Fault>) {
        let mut inner = self.lock();
        inner.beaten.get_or_insert_default().fault = fault;
        drop(inner);
        let _ = self.heard.offer(());
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can panic half way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often a node beats whose shortest lock lasts so long.
fn every(shortest: Option<Span>) -> Span {
    shortest.map_or(EVERY, |ttl| Span::from_micros(ttl.micros() / 3)).clamp(EVERY_MIN, EVERY)
}
