//! A store under test on a real server: two processes as far as the server can tell.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cronhold_core::record::RecordKey;
use cronhold_schedule::{Span, ZoneRegistry};
use cronhold_store::Store;
use cronhold_store::conformance::Subject;
use cronhold_store_zookeeper::testing::{ZnodeEditor, ZooKeeperServer};
use cronhold_store_zookeeper::{ZooKeeperOptions, ZooKeeperStore, ZooKeeperUrl};

pub(crate) struct OnZooKeeper {
    url: ZooKeeperUrl,
    stores: Mutex<OpenStores>,
    /// Stopped when the case ends.
    _server: Option<ZooKeeperServer>,
}

/// Two processes as far as the server can tell, each with a session and a mirror of its own. Cases get handles on both in
/// turn.
#[derive(Default)]
struct OpenStores {
    stores: [Option<ZooKeeperStore>; 2],
    handles: usize,
}

impl OnZooKeeper {
    /// On the servers of a URL. `server` is stopped when the case ends.
    pub(crate) fn new(url: ZooKeeperUrl, server: Option<ZooKeeperServer>) -> Self {
        Self { url, stores: Mutex::default(), _server: server }
    }

    fn open(&self) -> ZooKeeperStore {
        let options = ZooKeeperOptions { zones: Arc::new(ZoneRegistry::bundled()), memory: None };
        ZooKeeperStore::open(&self.url, options).expect("it can be opened")
    }
}

impl Subject for OnZooKeeper {
    fn store(&self) -> Arc<dyn Store> {
        let mut open = self.stores.lock().expect("not poisoned");
        open.handles += 1;
        let place = open.handles % 2;
        Arc::new(open.stores[place].get_or_insert_with(|| self.open()).clone())
    }

    fn pass(&self, span: Span) {
        // The server has its own clock, so the test waits.
        let (_sender, nothing) = std::sync::mpsc::channel::<()>();
        let _ = nothing.recv_timeout(Duration::from_micros(span.micros()));
    }

    fn reopen(&self) -> Arc<dyn Store> {
        *self.stores.lock().expect("not poisoned") = OpenStores::default();
        self.store()
    }

    fn damage(&self, key: &RecordKey) -> bool {
        ZnodeEditor::connect(&self.url).damage(key);
        true
    }
}
