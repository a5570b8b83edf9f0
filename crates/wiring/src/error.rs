//! Why a store cannot be opened, read or copied.

use cronhold_schedule::TextError;
use cronhold_store::Fault;
#[cfg(feature = "redis")]
use cronhold_store_redis as redis;
use cronhold_store_sqlite as sqlite;
#[cfg(feature = "zookeeper")]
use cronhold_store_zookeeper as zookeeper;

use crate::StoreUrl;

/// Why something could not be done with the store of a URL. The message is complete and has a hint where there is one.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An SQLite store cannot be opened.
    #[error(transparent)]
    OpenSqlite(#[from] sqlite::SqliteOpenError),
    /// A Redis store cannot be opened.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    OpenRedis(#[from] redis::RedisOpenError),
    /// A ZooKeeper store cannot be opened.
    #[cfg(feature = "zookeeper")]
    #[error(transparent)]
    OpenZooKeeper(#[from] zookeeper::ZooKeeperOpenError),
    /// The store failed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The store has no definitions of other schedulers, because only Cronhold writes to it.
    #[error("{0} is a store to which no other programs write")]
    NotShared(StoreUrl),
    /// A namespace that was to be used for a while and deleted has keys of another process.
    #[error("the namespace of {0} is not empty")]
    NamespaceInUse(StoreUrl),
    /// The name of a namespace is invalid.
    #[error("{0}")]
    Namespace(TextError),
    /// An SQLite store cannot be copied.
    #[error(transparent)]
    Backup(#[from] sqlite::BackupError),
    /// This kind of store cannot be copied into a file.
    #[error(
        "{0} is a Redis store, which cannot be copied into a file from here: let Redis write its snapshot \
         (`redis-cli BGSAVE`), or copy its append-only files"
    )]
    NoBackup(StoreUrl),
    /// A ZooKeeper store cannot be copied into a file.
    #[cfg(feature = "zookeeper")]
    #[error(
        "{0} is a ZooKeeper store, which cannot be copied into a file from here: copy the snapshots and the transaction \
         logs of one server"
    )]
    NoZooKeeperBackup(StoreUrl),
}
