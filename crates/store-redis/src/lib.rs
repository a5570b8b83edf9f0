//! The store on Redis. Our own records have keys below `cronhold:` in a namespace with one hash slot. The keys that
//! Cronken's protocol describes are written as well, so that its clients keep working; everything for that is in
//! `cronken`.
//!
//! In reading order: `core` connects the parts; `connections` sends requests; `commit`, `heartbeat`, `load`, `listing`
//! and `outputs` call the scripts; `rollback_recovery` handles a server that has lost commits; `store` implements the
//! trait. `namespace_keys` finds and deletes whole namespaces.

mod client;
mod commit;
mod connections;
mod core;
mod cronken;
mod enrollment;
mod expiry;
mod faults;
mod heartbeat;
mod keys;
mod line_budget;
mod listing;
mod load;
mod namespace_keys;
mod notifications;
mod outputs;
mod pack;
mod packed_unit;
mod replication;
mod reply;
mod rollback_recovery;
mod run_listing;
mod seal;
mod server_check;
mod store;
mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
mod url;
mod walk;

pub use namespace_keys::NamespaceKeys;
pub use store::{Options, RedisOpenError, RedisStore};
pub use tasks::RedisTaskStore;
pub use url::RedisUrl;
