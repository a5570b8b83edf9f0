//! The only crate that knows all kinds of stores: it turns a URL into a store.

mod error;
mod scratch;
mod url;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_schedule::ZoneRegistry;
use cronhold_store::{ClockFn, SharedDefinition, Store};
#[cfg(feature = "redis")]
use cronhold_store_redis::{self as redis, RedisStore};
use cronhold_store_sqlite::{self as sqlite, SqliteStore};
#[cfg(feature = "zookeeper")]
use cronhold_store_zookeeper::{ZooKeeperOptions, ZooKeeperStore};

pub use error::StoreError;
pub use scratch::ScratchStores;
pub use url::StoreUrl;

/// What stores need besides their URL.
#[derive(Clone)]
pub struct StoreContext {
    /// The clock, for stores without one of their own.
    pub clock: ClockFn,
    /// Time zones that jobs can name.
    pub zones: Arc<ZoneRegistry>,
    /// A file that records the state of a remote store, so that a rollback is detected even after a restart.
    pub memory: Option<PathBuf>,
    /// Whether a store may be used whose eviction policy can delete records.
    pub accept_loss: bool,
}

impl StoreContext {
    /// Without a file for remote stores, and without stores that may evict records.
    pub fn new(clock: ClockFn, zones: Arc<ZoneRegistry>) -> Self {
        Self { clock, zones, memory: None, accept_loss: false }
    }
}

/// Opens a store. A remote store is not contacted yet.
pub fn open(url: &StoreUrl, around: StoreContext) -> Result<Arc<dyn Store>, StoreError> {
    match url {
        StoreUrl::Sqlite(path) => {
            let options = sqlite::Options { clock: around.clock, zones: around.zones, size_max: None };
            let store = SqliteStore::open(path, options)?;
            Ok(Arc::new(store))
        }
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => {
            let StoreContext { zones, memory, accept_loss, .. } = around;
            let options = redis::Options { zones, memory, accept_loss };
            let store = RedisStore::open(url, options)?;
            Ok(Arc::new(store))
        }
        #[cfg(feature = "zookeeper")]
        StoreUrl::ZooKeeper(url) => {
            let StoreContext { zones, memory, .. } = around;
            let store = ZooKeeperStore::open(url, ZooKeeperOptions { zones, memory })?;
            Ok(Arc::new(store))
        }
    }
}

/// Reads the job definitions of another scheduler from its store. Writes nothing.
pub async fn read_shared(url: &StoreUrl, around: StoreContext) -> Result<Vec<SharedDefinition>, StoreError> {
    let store = open(url, around)?;
    let Some(shared) = store.shared() else {
        return Err(StoreError::NotShared(url.clone()));
    };
    Ok(shared.forms(None).await?)
}

/// Reads the data of castle-cron's jobs with the names of their znodes. Writes nothing. Blocks, and must not be called
/// inside an executor.
pub fn read_castle_jobs(url: &StoreUrl) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    match url {
        #[cfg(feature = "zookeeper")]
        StoreUrl::ZooKeeper(url) => {
            let jobs = cronhold_store_zookeeper::read_castle_jobs(url)??;
            Ok(jobs.into_iter().map(|job| (job.name, job.data)).collect())
        }
        other => Err(StoreError::NotShared(other.clone())),
    }
}

/// Copies a store into a new file. Calls `progress` with the parts that are done and their total.
pub fn backup(url: &StoreUrl, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<(), StoreError> {
    match url {
        StoreUrl::Sqlite(path) => {
            let mut report = |sofar: sqlite::BackupProgress| progress(sofar.done, sofar.total);
            Ok(sqlite::backup(path, to, &mut report)?)
        }
        #[cfg(feature = "redis")]
        StoreUrl::Redis(_) => Err(StoreError::NoBackup(url.clone())),
        #[cfg(feature = "zookeeper")]
        StoreUrl::ZooKeeper(_) => Err(StoreError::NoZooKeeperBackup(url.clone())),
    }
}

impl fmt::Debug for StoreContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreContext").finish_non_exhaustive()
    }
}
