//! Real servers for tests and benchmarks, each on a free port and with its own directory. Dropping a value kills its
//! server, also when a test panics.

mod cluster;
mod options;
mod sentinel;
mod server;

pub use cluster::ClusterSet;
pub use cronhold_store_remote::testing::until;
pub use options::ServerOptions;
pub use sentinel::SentinelSet;
pub use server::RedisServer;
