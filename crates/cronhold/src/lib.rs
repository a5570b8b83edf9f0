//! What the binary is made of: the machine that it runs on as the ports of a node, its own directory, the job files,
//! the log, and the daemon that puts them together with a store.

mod await_store;
pub mod backup;
pub mod chance;
pub mod clerk;
pub mod clock;
pub mod daemon;
#[cfg(debug_assertions)]
mod fail_ports;
mod front;
pub mod home;
mod import;
pub mod job_files;
pub mod log;
pub mod peers;
mod signals;
pub mod zone_rules;

/// Records are made and freed by the hundred thousand a second, many on another thread than they were made on.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
