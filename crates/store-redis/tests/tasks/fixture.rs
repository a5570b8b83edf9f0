//! Stores on a test's server.

use std::sync::Arc;

use cronhold_schedule::ZoneRegistry;
use cronhold_store_redis::testing::RedisServer;
use cronhold_store_redis::{Options, RedisStore, RedisUrl};

/// Opens a store with these parameters in its URL.
pub(crate) fn open(server: &RedisServer, params: &str) -> RedisStore {
    let url = RedisUrl::parse(&server.url_with(params)).expect("a URL");
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    RedisStore::open(&url, options).expect("it can be opened")
}
