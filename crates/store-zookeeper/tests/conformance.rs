//! The conformance suite on a real server. Each case has a root of its own, so all cases can use one server, which
//! `./dev test` starts; without it, each case starts its own.

mod subject;

use std::path::Path;

use cronhold_store_zookeeper::testing::ZooKeeperServer;
use subject::OnZooKeeper;

/// Contains the address of a server that all cases use.
const SHARED: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/zookeeper-server");

fn on_zookeeper() -> OnZooKeeper {
    let (server, url) = ZooKeeperServer::shared_or_new(Path::new(SHARED), "output=8388608");
    OnZooKeeper::new(url, server)
}

cronhold_store::conformance_tests!(on_zookeeper);
