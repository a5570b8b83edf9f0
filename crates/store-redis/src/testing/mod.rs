//! Real servers for tests and benchmarks, each on a free port and with its own directory. Dropping a value kills its
//! server, also when a test panics.

mod certificates;
mod cluster;
mod options;
mod sentinel;
mod server;
mod waiting;

pub use cluster::ClusterSet;
pub use options::ServerOptions;
pub use sentinel::SentinelSet;
pub use server::RedisServer;
pub use waiting::{PATIENCE, until};
