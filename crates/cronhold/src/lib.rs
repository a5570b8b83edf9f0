//! The parts of the binary: clock, entropy, signals, the data directory, job files, the log, the HTTP server, and the
//! daemon that connects them with a store and runs a node. `bench` measures such a node.

mod await_store;
pub mod backup;
pub mod bench;
pub mod chance;
mod channels;
pub mod clock;
pub mod daemon;
#[cfg(debug_assertions)]
mod fail_ports;
mod http;
mod import;
mod job_defaults;
pub mod job_files;
pub mod local_store_server;
pub mod log;
mod memory;
mod node_name;
mod peers;
pub mod plugin_check;
mod progress_line;
mod signals;
pub mod state_dir;
pub mod worker;
pub mod zone_rules;
