//! The ZooKeeper server or ensemble of a sandbox.

use cronhold_store_zookeeper::testing::{ZooKeeperEnsemble, ZooKeeperServer};

use crate::sandbox::{Sandbox, SandboxServer};

/// How long servers keep a silent session: short, because tests suspend nodes for longer.
const TIMEOUT: &str = "timeout=4s";

/// Finished runs that are kept of each job on an ensemble, more than the tests create.
const KEPT: u32 = 1_000;

/// What serves the stores of most tests.
pub(crate) type TestServer = ZooKeeperServer;

impl SandboxServer for ZooKeeperServer {
    const NAME: &'static str = "zookeeper";

    fn store_url(&self) -> String {
        format!("{}?{TIMEOUT}", self.url("/castle-cron"))
    }
}

impl SandboxServer for ZooKeeperEnsemble {
    const NAME: &'static str = "ensemble";

    fn store_url(&self) -> String {
        format!("{}?{TIMEOUT}&keep={KEPT}", self.url("/castle-cron"))
    }
}

impl Sandbox {
    /// On one server.
    pub(crate) fn new(name: &str) -> Self {
        Self::on(name, ZooKeeperServer::start())
    }
}

impl Sandbox<ZooKeeperEnsemble> {
    /// On an ensemble of three.
    pub(crate) fn of_three(name: &str) -> Self {
        Self::on(name, ZooKeeperEnsemble::start())
    }
}
