//! The port, put together. Everything is done on a runtime of the store's own, so that handles can be used on any
//! executor, and what was begun goes on when nobody waits for it any more.

use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::{Key, LockName, Node, Stored};
use cronhold_schedule::{Instant, Zones};
use cronhold_store::{
    Chunk, Committed, Fault, Health, Hint, Obligation, Page, Pending, Query, Refusal, Shared, Store, Unit, Writer,
};
use tokio::runtime::{Builder, Runtime};

use crate::faults;
use crate::heal::Notebook;
use crate::hints::{self, HandleId};
use crate::inner::Inner;
use crate::keys;
use crate::link::Link;
use crate::order::Order;
use crate::shared::SharedKeys;
use crate::url::RedisUrl;

/// A handle on a store in Redis. Clones are other handles on the same store; each has hints of its own.
pub struct RedisStore {
    id: HandleId,
    inner: Arc<Inner>,
    place: Arc<Place>,
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where jobs' zones are looked up.
    pub zones: Arc<Zones>,
    /// A file that remembers how far the store had come, so that one that has gone back is noticed after a restart.
    pub memory: Option<PathBuf>,
    /// Whether a server may be used that throws keys away when its memory is full.
    pub accept_loss: bool,
}

/// Why a store cannot be opened. That a server cannot be reached is not among it: that is said when it is asked.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no thread for it.
    #[error("a thread for the line to Redis cannot be started: {0}")]
    Thread(std::io::Error),
    /// There are no random numbers, which locks need.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Where the work is done, and what lives there.
struct Place {
    /// None only while it is dropped.
    runtime: Option<Runtime>,
    shared: SharedKeys,
}

impl RedisStore {
    /// Opens a store. Nothing is asked of the server before something is asked of the store.
    pub fn open(url: &RedisUrl, options: Options) -> Result<Self, OpenError> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("redis").enable_all().build().map_err(OpenError::Thread)?;
        let link = Link::new(url, runtime.handle().clone());
        let Options { zones, memory, accept_loss } = options;
        let notebook = memory.map(Notebook::new);
        let inner = Inner::new(url.clone(), zones, accept_loss, link.clone(), notebook).map_err(OpenError::Random)?;
        let peers = Arc::clone(&inner.peers);
        let shared = SharedKeys::new(link, runtime.handle().clone(), &url.settings.namespace, peers);
        let place = Arc::new(Place { runtime: Some(runtime), shared });
        Ok(Self { id: inner.hints.join(), inner: Arc::new(inner), place })
    }

    /// Nothing is committed for so long at least after the store has gone back. Tests are not as patient as nodes that
    /// have others beside them.
    #[cfg(feature = "testing")]
    pub fn wait_when_gone_back(&self, least: std::time::Duration) {
        self.inner.heal.set_least_wait(u64::try_from(least.as_millis()).unwrap_or(u64::MAX));
    }

    /// Does something on the store's runtime.
    async fn on_line<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        self.place.spawn(work).await.unwrap_or_else(|| Err(closed()))
    }

    /// The same for what only looks: without an answer, nothing has happened.
    async fn looking<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        self.on_line(work).await.map_err(faults::as_unsent)
    }

    async fn carry_out(&self, orders: Vec<Order>) -> Vec<Result<Committed, Refusal>> {
        let (inner, by, asked) = (Arc::clone(&self.inner), self.id, orders.len());
        let done = self.place.spawn(async move {
            let results = inner.carry_out(by, orders).await;
            let fault = results.iter().find_map(|result| match result {
                Err(Refusal::Fault(fault)) => Some(fault),
                _ => None,
            });
            inner.tally.wrote(fault);
            results
        });
        done.await.unwrap_or_else(|| vec![Err(closed().into()); asked])
    }

    fn orders(&self, units: Vec<Unit>) -> Vec<Order> {
        units.into_iter().map(|unit| Order::new(unit, &self.inner)).collect()
    }
}

impl Place {
    /// Does something on the runtime; goes on when nobody waits. None when it was cut off.
    async fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        self.runtime.as_ref()?.spawn(work).await.ok()
    }
}

fn closed() -> Fault {
    Fault::Unknown("the store was closed".to_owned())
}

impl Store for RedisStore {
    fn enroll(&self) -> Pending<'_, Result<Writer, Fault>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.on_line(async move { inner.enroll().await }))
    }

    fn load<'a>(&'a self, keys: &'a [Key]) -> Pending<'a, Result<Vec<Option<Stored>>, Fault>> {
        let (inner, keys) = (Arc::clone(&self.inner), keys.to_vec());
        Box::pin(self.looking(async move { inner.load(keys).await }))
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<Committed, Refusal>>> {
        Box::pin(async move { self.carry_out(self.orders(units)).await })
    }

    /// Units are encoded at once: they are most of what there is to do outside the server.
    fn prepare_commit(self: Arc<Self>, units: Vec<Unit>) -> Pending<'static, Vec<Result<Committed, Refusal>>> {
        let orders = self.orders(units);
        Box::pin(async move { self.carry_out(orders).await })
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        let (inner, after) = (Arc::clone(&self.inner), after.cloned());
        Box::pin(self.looking(async move { inner.due(after, until, limit).await }))
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        let (inner, query) = (Arc::clone(&self.inner), query.clone());
        Box::pin(self.looking(async move { inner.page(query, limit).await }))
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        let (inner, bytes) = (Arc::clone(&self.inner), bytes.to_vec());
        Box::pin(self.on_line(async move {
            let appended = inner.outputs.append(run, from, bytes).await?;
            inner.tally.failed(appended.failures);
            Ok(appended.length)
        }))
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.looking(async move { inner.outputs.read(run, from, most).await }))
    }

    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.looking(async move { inner.outputs.list(after, limit).await }))
    }

    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>> {
        let (inner, runs) = (Arc::clone(&self.inner), runs.to_vec());
        Box::pin(self.on_line(async move { inner.outputs.drop_all(&runs).await }))
    }

    fn beat<'a>(&'a self, node: &'a Node, locks: &'a [(LockName, RunId)]) -> Pending<'a, Result<Vec<LockName>, Fault>> {
        let (inner, by, node, locks) = (Arc::clone(&self.inner), self.id, node.clone(), locks.to_vec());
        Box::pin(self.on_line(async move {
            let answer = inner.beat(by, node, locks).await;
            inner.tally.wrote(answer.as_ref().err());
            answer
        }))
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        if self.inner.hints.begins()
            && let Some(runtime) = &self.place.runtime
        {
            let channel = keys::hints(&self.inner.settings().namespace);
            runtime.spawn(hints::listen(self.inner.link.clone(), channel, Arc::downgrade(&self.inner)));
        }
        Box::pin(poll_fn(|context| self.inner.hints.poll(self.id, context.waker())))
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.looking(async move { inner.time().await }))
    }

    fn health(&self) -> Pending<'_, Health> {
        Box::pin(async move {
            let mut health = self.inner.health();
            health.warnings.extend(self.place.shared.warning());
            health
        })
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(&self.place.shared)
    }
}

impl Clone for RedisStore {
    fn clone(&self) -> Self {
        Self { id: self.inner.hints.join(), inner: Arc::clone(&self.inner), place: Arc::clone(&self.place) }
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.inner.hints.leave(self.id);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The last handle may be dropped on any thread, also where nobody may wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({}, {:?})", self.inner.url, self.id)
    }
}
