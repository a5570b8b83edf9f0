//! Tests of the real binary on a real ZooKeeper: commands without a daemon, and several nodes.

mod castle;
mod cluster;
#[path = "../cluster_load/mod.rs"]
mod cluster_load;
mod features;
mod kazoo_client;
#[path = "../log_lines/mod.rs"]
mod log_lines;
mod nodes;
#[path = "../processes/mod.rs"]
mod processes;
#[path = "../store_sandbox/mod.rs"]
#[expect(dead_code, reason = "the tests on Redis use the rest")]
mod sandbox;
mod server;
#[path = "../store_features/mod.rs"]
mod store_features;
mod urls;
mod verbs;
