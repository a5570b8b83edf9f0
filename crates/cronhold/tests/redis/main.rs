//! Tests of the real binary on a real Redis: one node, several nodes, and nodes of Python Cronken on the same store.

mod bench;
mod cluster;
#[path = "../cluster_load/mod.rs"]
mod cluster_load;
mod cronken;
mod flood;
mod import;
mod keeper;
#[path = "../log_lines/mod.rs"]
mod log_lines;
mod peers;
mod peers_setting;
#[path = "../processes/mod.rs"]
mod processes;
mod remote_tasks;
mod resume;
#[path = "../resume_all/mod.rs"]
mod resume_all;
mod rollback_recovery;
#[path = "../store_sandbox/mod.rs"]
mod sandbox;
mod server;
#[path = "../service/mod.rs"]
#[expect(dead_code, reason = "the tests of the daemon use the rest")]
mod service;
#[path = "../store_features/mod.rs"]
mod store_features;
mod store_refusals;
mod store_verbs;
#[path = "../task_stories/mod.rs"]
mod task_stories;
mod tasks;
mod wire;
mod workers;
mod zone_releases;
