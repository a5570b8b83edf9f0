//! The line from a machine to the store. A call takes effect at some moment between its sending and its answer, so a
//! crash can come before that moment, after it, or while nobody knows; and the weather decides what gets lost.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use cronhold_core::RunId;
use cronhold_core::record::{Key, LockName, Node, Stored};
use cronhold_schedule::Instant;
use cronhold_store::{
    Chunk, Committed, Fault, Health, Hint, Obligation, Page, Pending, Query, Refusal, Store, Unit, Writer,
};

use crate::chance::Chance;
use crate::executor::Whose;
use crate::stage::Stage;
use crate::weather::{Fate, Weather};

/// The line of one life of a machine's daemon.
#[derive(Debug)]
pub(crate) struct Line {
    /// What is at its other end.
    pub(crate) store: Arc<dyn Store>,
    /// What the simulation shares.
    pub(crate) stage: Stage,
    /// What the way is like.
    pub(crate) weather: Weather,
    /// Its own chance.
    pub(crate) chance: Chance,
    /// Which machine.
    pub(crate) machine: usize,
    /// The name of the machine.
    pub(crate) who: String,
    /// Whether the daemon still lives.
    pub(crate) is_alive: Arc<AtomicBool>,
}

type Results = Vec<Result<Committed, Refusal>>;

/// Where the answer to a commit arrives.
#[derive(Debug, Default)]
struct Letterbox(Mutex<(Option<Results>, Option<Waker>)>);

impl Line {
    /// A call that only reads, or whose effect does no harm when it is lost.
    async fn call<T>(&self, call: Pending<'_, Result<T, Fault>>) -> Result<T, Fault> {
        self.travel().await;
        if let Some(fault) = self.weather.read(&self.chance, self.stage.time.now(), self.machine) {
            return Err(fault);
        }
        let answer = call.await;
        self.travel().await;
        answer
    }

    async fn travel(&self) {
        self.stage.time.sleep(self.weather.delay(&self.chance)).await;
    }

    /// Sends units on their way. From here on no crash of the sender holds them up for sure.
    fn send(&self, units: Vec<Unit>, is_lost: bool) -> Arc<Letterbox> {
        let letterbox = Arc::new(Letterbox::default());
        let answer = Arc::clone(&letterbox);
        let (store, time, is_alive) = (Arc::clone(&self.store), self.stage.time.clone(), Arc::clone(&self.is_alive));
        let (there, back) = (self.weather.delay(&self.chance), self.weather.delay(&self.chance));
        // What was sent to a store of its own dies with the sender; on a network it may still arrive.
        let outlives_sender = store.is_shared() && self.chance.one_in(2);
        self.stage.executor.spawn(Whose::Nobody, async move {
            time.sleep(there).await;
            if is_lost || !(is_alive.load(Ordering::Relaxed) || outlives_sender) {
                return;
            }
            let results = store.commit(units).await;
            time.sleep(back).await;
            answer.put(results);
        });
        letterbox
    }
}

impl Store for Line {
    fn enroll(&self) -> Pending<'_, Result<Writer, Fault>> {
        Box::pin(self.call(self.store.enroll()))
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn load<'a>(&'a self, keys: &'a [Key]) -> Pending<'a, Result<Vec<Option<Stored>>, Fault>> {
        Box::pin(self.call(self.store.load(keys)))
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Results> {
        Box::pin(async move {
            let count = units.len();
            let fail = |fault: Fault| (0..count).map(|_| Err(Refusal::Fault(fault.clone()))).collect();
            match self.weather.commit(&self.chance, self.stage.time.now(), self.machine) {
                Fate::Fine => self.send(units, false).take().await,
                Fate::Fails(fault) => {
                    self.travel().await;
                    self.stage.say(&self.who, || format!("commit of {count} fails: {fault}"));
                    fail(fault)
                }
                Fate::Silent { patience, is_lost } => {
                    self.send(units, is_lost);
                    self.stage.time.sleep(patience).await;
                    self.stage.say(&self.who, || format!("commit of {count}: no answer"));
                    fail(Fault::Unknown("no answer in time".to_owned()))
                }
            }
        })
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        Box::pin(self.call(self.store.due(after, until, limit)))
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        Box::pin(self.call(self.store.page(query, limit)))
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        Box::pin(self.call(self.store.append(run, from, bytes)))
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        Box::pin(self.call(self.store.read(run, from, most)))
    }

    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>> {
        Box::pin(self.call(self.store.outputs(after, limit)))
    }

    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>> {
        Box::pin(self.call(self.store.drop_outputs(runs)))
    }

    fn beat<'a>(&'a self, node: &'a Node, locks: &'a [(LockName, RunId)]) -> Pending<'a, Result<Vec<LockName>, Fault>> {
        Box::pin(self.call(self.store.beat(node, locks)))
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        self.store.hints()
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        Box::pin(self.call(self.store.time()))
    }

    fn health(&self) -> Pending<'_, Health> {
        self.store.health()
    }
}

impl Letterbox {
    fn put(&self, results: Results) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0 = Some(results);
        let waker = inner.1.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    async fn take(&self) -> Results {
        poll_fn(|context| {
            let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match inner.0.take() {
                Some(results) => Poll::Ready(results),
                None => {
                    inner.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
