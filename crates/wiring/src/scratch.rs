//! Stores that are used for a while and then removed, such as those of a benchmark.

use std::fmt;
use std::path::{Path, PathBuf};

#[cfg(feature = "redis")]
use cronhold_store_redis::{NamespaceKeys, RedisUrl};
#[cfg(feature = "zookeeper")]
use cronhold_store_zookeeper::{ZnodeTree, ZooKeeperUrl};

use crate::{StoreError, StoreUrl};

/// A location of new stores that did not exist before and are deleted together. Its methods block, and must not be
/// called inside an executor.
#[derive(Debug)]
pub struct ScratchStores(ScratchLocation);

#[derive(Debug)]
enum ScratchLocation {
    /// SQLite files in a directory of the caller.
    Directory(PathBuf),
    /// Namespaces on a Redis server that share a prefix, which is the namespace of the URL.
    #[cfg(feature = "redis")]
    Namespace { url: Box<RedisUrl>, keys: NamespaceKeys },
    /// Roots in a ZooKeeper ensemble below a common one, which is the root of the URL.
    #[cfg(feature = "zookeeper")]
    Root { url: Box<ZooKeeperUrl>, tree: Box<ZnodeTree> },
}

impl ScratchStores {
    /// Finds a location for stores of the kind of `url`. SQLite stores are in `dir`, which the caller removes. Redis
    /// stores are in the namespace of the URL, or, if the URL has the default namespace, in one with the name of `dir`
    /// in braces. ZooKeeper stores are below the root of the URL, or, if that is the default, below one with the name of
    /// `dir`. Fails if the server is unreachable, the namespace has keys or the root exists. Writes nothing yet.
    pub fn find(url: &StoreUrl, dir: &Path) -> Result<Self, StoreError> {
        match url {
            StoreUrl::Sqlite(_) => Ok(Self(ScratchLocation::Directory(dir.to_owned()))),
            #[cfg(feature = "redis")]
            StoreUrl::Redis(given) => {
                let url = if given.has_default_namespace() {
                    let name = dir.file_name().unwrap_or_default().to_string_lossy();
                    Box::new(given.with_namespace(&format!("{{{name}}}")).map_err(StoreError::Namespace)?)
                } else {
                    given.clone()
                };
                let keys = NamespaceKeys::open(&url)?;
                if !keys.is_empty()? {
                    return Err(StoreError::NamespaceInUse(StoreUrl::Redis(url)));
                }
                Ok(Self(ScratchLocation::Namespace { url, keys }))
            }
            #[cfg(feature = "zookeeper")]
            StoreUrl::ZooKeeper(given) => {
                let url = if given.has_default_root() {
                    let name = dir.file_name().unwrap_or_default().to_string_lossy();
                    Box::new(given.with_root(&format!("/{name}")).map_err(StoreError::Namespace)?)
                } else {
                    given.clone()
                };
                let tree = Box::new(ZnodeTree::open(&url)?);
                if tree.exists()? {
                    return Err(StoreError::NamespaceInUse(StoreUrl::ZooKeeper(url)));
                }
                Ok(Self(ScratchLocation::Root { url, tree }))
            }
        }
    }

    /// The URL of the store with a name. Each name is a store of its own. An SQLite store is in the directory `name`,
    /// which the caller creates.
    pub fn store(&self, name: &str) -> Result<StoreUrl, StoreError> {
        match &self.0 {
            ScratchLocation::Directory(dir) => Ok(StoreUrl::Sqlite(dir.join(name).join("cronhold.db"))),
            #[cfg(feature = "redis")]
            ScratchLocation::Namespace { url, .. } => {
                let namespace = format!("{}:{name}", url.namespace());
                let url = url.with_namespace(&namespace).map_err(StoreError::Namespace)?;
                Ok(StoreUrl::Redis(Box::new(url)))
            }
            #[cfg(feature = "zookeeper")]
            ScratchLocation::Root { url, .. } => {
                let root = format!("{}/{name}", url.root());
                let url = url.with_root(&root).map_err(StoreError::Namespace)?;
                Ok(StoreUrl::ZooKeeper(Box::new(url)))
            }
        }
    }

    /// Deletes all stores on a server. All of them must be closed. Files stay, because the caller removes their
    /// directory.
    pub fn delete(&self) -> Result<(), StoreError> {
        match &self.0 {
            ScratchLocation::Directory(_) => Ok(()),
            #[cfg(feature = "redis")]
            ScratchLocation::Namespace { keys, .. } => {
                keys.delete_all()?;
                Ok(())
            }
            #[cfg(feature = "zookeeper")]
            ScratchLocation::Root { tree, .. } => Ok(tree.delete_all()?),
        }
    }
}

impl fmt::Display for ScratchStores {
    /// The kind of store, or the URL with the shared prefix as its namespace. Passwords are masked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ScratchLocation::Directory(_) => f.write_str("SQLite"),
            #[cfg(feature = "redis")]
            ScratchLocation::Namespace { url, .. } => url.fmt(f),
            #[cfg(feature = "zookeeper")]
            ScratchLocation::Root { url, .. } => url.fmt(f),
        }
    }
}
