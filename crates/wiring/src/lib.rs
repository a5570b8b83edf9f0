//! The one place that knows which stores there are. Whoever wants one has a URL and gets the port.

mod url;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use cronhold_schedule::Zones;
use cronhold_store::{Clock, Store};
use cronhold_store_sqlite::{self as sqlite, SqliteStore};

pub use url::StoreUrl;

/// What stores need beside their URL.
#[derive(Clone)]
pub struct Around {
    /// Time, for stores that have none of their own.
    pub clock: Clock,
    /// Zones that jobs can name.
    pub zones: Arc<Zones>,
}

/// Opens a store for a daemon. What cannot be done is said in a sentence, with what to do about it.
pub fn open(url: &StoreUrl, around: Around) -> Result<Arc<dyn Store>, String> {
    match url {
        StoreUrl::Sqlite(path) => {
            let store = SqliteStore::open(path, options(around)).map_err(|error| error.to_string())?;
            Ok(Arc::new(store))
        }
    }
}

/// Copies a store into a new file, and says now and then how many of how many parts are done.
pub fn backup(url: &StoreUrl, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<(), String> {
    match url {
        StoreUrl::Sqlite(path) => {
            let mut told = |sofar: sqlite::Progress| progress(sofar.done, sofar.total);
            sqlite::backup(path, to, &mut told).map_err(|error| error.to_string())
        }
    }
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Around").finish_non_exhaustive()
    }
}

fn options(around: Around) -> sqlite::Options {
    sqlite::Options { clock: around.clock, zones: around.zones, size_max: None }
}
