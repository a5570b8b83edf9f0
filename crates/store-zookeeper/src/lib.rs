//! The store on ZooKeeper. Each record is a znode. A commit is one transaction, or several that form a chain; a load is
//! one read behind a sync; lists are answered from a mirror of all records, which one watch keeps up to date. Locks are
//! znodes with a time to live by the clock of the leader, and do not depend on sessions.

mod castle;
mod clock;
mod commit;
mod core;
mod ensemble;
mod expiry;
mod faults;
mod heartbeat;
mod known_znodes;
mod load;
mod lock_text;
mod mirror;
mod outputs;
mod paths;
mod position;
mod record_text;
mod seal;
mod server_version;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod url;
mod wire;
mod writer_registry;
mod znode_tree;

pub use castle::{RawCastleJob, read_castle_jobs};
pub use store::{ZooKeeperOpenError, ZooKeeperOptions, ZooKeeperStore};
pub use url::ZooKeeperUrl;
pub use znode_tree::ZnodeTree;
