//! The suite for failing servers on a real one, which has every confirmed commit on its disk.

use std::sync::{Arc, Mutex, MutexGuard};

use cronhold_schedule::ZoneRegistry;
use cronhold_store::Store;
use cronhold_store::troubles::{FailingServers, LossResponse};
use cronhold_store_redis::testing::{RedisServer, ServerOptions};
use cronhold_store_redis::{Options, RedisStore, RedisUrl};

struct FailingRedis(Mutex<RedisServer>);

impl FailingRedis {
    fn server(&self) -> MutexGuard<'_, RedisServer> {
        self.0.lock().expect("not poisoned")
    }
}

impl FailingServers for FailingRedis {
    fn open(&self) -> Arc<dyn Store> {
        let url = RedisUrl::parse(&self.server().url_with("timeout=1s")).expect("a URL");
        let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
        Arc::new(RedisStore::open(&url, options).expect("it can be opened"))
    }

    fn suspend(&self) {
        self.server().freeze();
    }

    fn resume(&self) {
        self.server().thaw();
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
        LossResponse::Restores
    }

    fn end_recovery(&self) {
        assert_eq!(self.server().cli(&["DEL", "{cronken}:cronhold:healing"]), "1", "commits are rejected");
    }
}

fn failing_redis() -> FailingRedis {
    FailingRedis(Mutex::new(RedisServer::start_with(ServerOptions { aof: true, ..Default::default() })))
}

cronhold_store::trouble_tests!(failing_redis);
