//! The one place that knows which stores there are. Whoever wants one has a URL and gets the port.

mod url;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_schedule::Zones;
use cronhold_store::{Clock, SharedForm, Store};
#[cfg(feature = "redis")]
use cronhold_store_redis::{self as redis, RedisStore};
use cronhold_store_sqlite::{self as sqlite, SqliteStore};

pub use url::StoreUrl;

/// What stores need beside their URL.
#[derive(Clone)]
pub struct Around {
    /// Time, for stores that have none of their own.
    pub clock: Clock,
    /// Zones that jobs can name.
    pub zones: Arc<Zones>,
    /// A file in which a store elsewhere is remembered, so that one that has lost something is known for it also after
    /// a restart.
    pub memory: Option<PathBuf>,
    /// Whether a store may be used that is set up to throw away what it should keep.
    pub accept_loss: bool,
}

impl Around {
    /// The least that a store needs: nothing is remembered of it, and none is used that may lose what it holds.
    pub fn new(clock: Clock, zones: Arc<Zones>) -> Self {
        Self { clock, zones, memory: None, accept_loss: false }
    }
}

/// Opens a store. What cannot be done is said in a sentence, with what to do about it. One elsewhere is asked nothing
/// yet, and nothing is written there.
pub fn open(url: &StoreUrl, around: Around) -> Result<Arc<dyn Store>, String> {
    match url {
        StoreUrl::Sqlite(path) => {
            let options = sqlite::Options { clock: around.clock, zones: around.zones, size_max: None };
            let store = SqliteStore::open(path, options).map_err(|error| error.to_string())?;
            Ok(Arc::new(store))
        }
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => {
            let Around { zones, memory, accept_loss, .. } = around;
            let options = redis::Options { zones, memory, accept_loss };
            let store = RedisStore::open(url, options).map_err(|error| error.to_string())?;
            Ok(Arc::new(store))
        }
    }
}

/// Jobs in the form of other programs that write to the store as well. Nothing is written there.
pub async fn read_shared(url: &StoreUrl, around: Around) -> Result<Vec<SharedForm>, String> {
    let store = open(url, around)?;
    let Some(shared) = store.shared() else {
        return Err(format!("{url} is a store that no other programs write to"));
    };
    shared.forms(None).await.map_err(|fault| fault.to_string())
}

/// Copies a store into a new file, and says now and then how many of how many parts are done.
pub fn backup(url: &StoreUrl, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<(), String> {
    match url {
        StoreUrl::Sqlite(path) => {
            let mut told = |sofar: sqlite::BackupProgress| progress(sofar.done, sofar.total);
            sqlite::backup(path, to, &mut told).map_err(|error| error.to_string())
        }
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => Err(format!(
            "{url} is a Redis store, which cannot be copied into a file from here: let Redis write its snapshot \
             (`redis-cli BGSAVE`), or copy the files of its log, where they are kept"
        )),
    }
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Around").finish_non_exhaustive()
    }
}
