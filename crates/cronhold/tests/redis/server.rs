//! The Redis server of a sandbox.

use cronhold_store_redis::testing::{RedisServer, ServerOptions};

use crate::sandbox::{Sandbox, SandboxServer};

/// What serves the stores of these tests.
pub(crate) type TestServer = RedisServer;

impl SandboxServer for RedisServer {
    const NAME: &'static str = "redis";

    fn store_url(&self) -> String {
        self.url()
    }
}

impl Sandbox {
    /// Starts a server with default options.
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, ServerOptions::default())
    }

    pub(crate) fn with(name: &str, options: ServerOptions) -> Self {
        Self::on(name, RedisServer::start_with(options))
    }
}
