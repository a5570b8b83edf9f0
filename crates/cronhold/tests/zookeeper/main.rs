//! Tests of the real binary on a real ZooKeeper: commands without a daemon, and several nodes.

mod castle;
mod kazoo_client;
#[path = "../log_lines/mod.rs"]
mod log_lines;
mod nodes;
#[path = "../processes/mod.rs"]
mod processes;
mod sandbox;
mod urls;
mod verbs;
