//! Reads and writes znodes as an operator does, without the store.

use std::fmt;

use cronhold_core::record::RecordKey;
use tokio::runtime::{Builder, Runtime};

use crate::paths::ZnodePaths;
use crate::url::ZooKeeperUrl;
use crate::wire::{WriteFailure, ZnodeWrite, ZooKeeperSession};

/// A session of its own. Its methods block, and panic if a request fails.
pub struct ZnodeEditor {
    runtime: Runtime,
    session: ZooKeeperSession,
    paths: ZnodePaths,
}

impl ZnodeEditor {
    /// Connects to the ensemble of a URL.
    pub fn connect(url: &ZooKeeperUrl) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread");
        let session = runtime.block_on(ZooKeeperSession::connect(url)).expect("the server accepts sessions");
        Self { runtime, session, paths: ZnodePaths::new(url.root()) }
    }

    /// The data of a znode below the root; `None` if it does not exist.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.read_path(format!("{}/{name}", self.paths.root()))
    }

    /// Sets the data of a znode below the root, or creates it.
    pub fn write(&self, name: &str, data: &[u8]) {
        let path = format!("{}/{name}", self.paths.root());
        let write = match self.read_path(path.clone()) {
            Some(_) => ZnodeWrite::Set { path, data: data.to_vec(), version: None },
            None => ZnodeWrite::Create { path, data: data.to_vec(), is_ephemeral: false },
        };
        self.submit(write).expect("the znode can be written");
    }

    /// Deletes a znode below the root.
    pub fn delete(&self, name: &str) {
        let path = format!("{}/{name}", self.paths.root());
        self.submit(ZnodeWrite::Delete { path, version: None }).expect("the znode can be deleted");
    }

    /// The names of the children of a znode below the root.
    pub fn children(&self, name: &str) -> Vec<String> {
        let path = format!("{}/{name}", self.paths.root());
        let names = self.runtime.block_on(async {
            self.session.sync().await?;
            self.session.children(&[path]).await
        });
        names.expect("the server replies").into_iter().flatten().collect()
    }

    /// Sets the data of the root, and returns the number of the transaction.
    pub fn transaction(&self) -> i64 {
        let stat = self.runtime.block_on(self.session.set(self.paths.root(), b"")).expect("the root exists");
        stat.zxid
    }

    /// Damages the text of a record: its first line stays, and the rest is neither JSON nor UTF-8.
    pub fn damage(&self, key: &RecordKey) {
        let path = self.paths.record(key).expect("the record has a znode");
        let data = self.read_path(path.clone()).expect("the record exists");
        let end = data.iter().position(|byte| *byte == b'\n').expect("a text has two lines");
        let damaged = [&data[..=end], b"{\xff"].concat();
        self.submit(ZnodeWrite::Set { path, data: damaged, version: None }).expect("the record can be written");
    }

    fn read_path(&self, path: String) -> Option<Vec<u8>> {
        let found = self.runtime.block_on(self.session.read(&[path], true));
        found.expect("the server replies").pop().flatten().map(|znode| znode.data)
    }

    fn submit(&self, write: ZnodeWrite) -> Result<(), WriteFailure> {
        self.runtime.block_on(self.session.write(&[write])).map(drop)
    }
}

impl fmt::Debug for ZnodeEditor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ZnodeEditor({})", self.paths.root())
    }
}
