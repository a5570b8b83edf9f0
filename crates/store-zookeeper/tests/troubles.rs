//! The suite for failing servers on a real one. A store that has lost data is not used until an operator decides.

use std::sync::{Arc, Mutex, MutexGuard};

use cronhold_schedule::ZoneRegistry;
use cronhold_store::Store;
use cronhold_store::troubles::{FailingServers, LossResponse};
use cronhold_store_zookeeper::testing::ZooKeeperServer;
use cronhold_store_zookeeper::{ZooKeeperOptions, ZooKeeperStore, ZooKeeperUrl};

struct FailingZooKeeper(Mutex<ZooKeeperServer>);

impl FailingZooKeeper {
    fn server(&self) -> MutexGuard<'_, ZooKeeperServer> {
        self.0.lock().expect("not poisoned")
    }
}

impl FailingServers for FailingZooKeeper {
    fn open(&self) -> Arc<dyn Store> {
        let url = format!("{}?timeout=2s&output=8388608", self.server().url("/castle-cron"));
        let url = ZooKeeperUrl::parse(&url, None).expect("a URL");
        let options = ZooKeeperOptions { zones: Arc::new(ZoneRegistry::bundled()), memory: None };
        Arc::new(ZooKeeperStore::open(&url, options).expect("it can be opened"))
    }

    fn suspend(&self) {
        self.server().suspend();
    }

    fn resume(&self) {
        self.server().resume();
    }

    fn kill(&self) {
        self.server().kill();
    }

    fn start(&self) {
        self.server().restart();
    }

    fn forget(&self) {
        self.server().restart_empty();
    }

    fn loss_response(&self) -> LossResponse {
        LossResponse::Refuses
    }
}

fn failing_zookeeper() -> FailingZooKeeper {
    FailingZooKeeper(Mutex::new(ZooKeeperServer::start()))
}

cronhold_store::trouble_tests!(failing_zookeeper);
