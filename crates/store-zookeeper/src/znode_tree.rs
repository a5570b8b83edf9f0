//! All znodes below a root, for callers that use a root for a while and then delete it. It is separate from the store,
//! because no store deletes its own records in this way.

use cronhold_store::Fault;
use cronhold_store_remote::faults::as_unsent;
use tokio::runtime::{Builder, Runtime};

use crate::store::ZooKeeperOpenError;
use crate::url::ZooKeeperUrl;
use crate::wire::{WriteFailure, ZnodeWrite, ZooKeeperSession};

/// Znodes that one request lists or deletes.
const BATCH: usize = 500;

/// Complete passes before the deletion fails because another process keeps creating znodes.
const PASSES_MAX: usize = 10;

/// Finds and deletes a root and everything below it. Its methods block, and must not be called inside an executor.
#[derive(Debug)]
pub struct ZnodeTree {
    runtime: Runtime,
    url: ZooKeeperUrl,
}

impl ZnodeTree {
    /// The root of a URL. Does not connect before the first request.
    pub fn open(url: &ZooKeeperUrl) -> Result<Self, ZooKeeperOpenError> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("zookeeper").enable_all().build();
        Ok(Self { runtime: runtime.map_err(ZooKeeperOpenError)?, url: url.clone() })
    }

    /// Whether the root exists.
    pub fn exists(&self) -> Result<bool, Fault> {
        let root = [self.url.root().to_owned()];
        self.runtime.block_on(async {
            let session = ZooKeeperSession::connect(&self.url).await?;
            Ok(session.read(&root, true).await?.pop().flatten().is_some())
        })
    }

    /// Deletes the root and everything below it.
    pub fn delete_all(&self) -> Result<(), Fault> {
        self.runtime.block_on(async {
            let session = ZooKeeperSession::connect(&self.url).await?;
            for _ in 0..PASSES_MAX {
                if self.delete_once(&session).await? {
                    return Ok(());
                }
            }
            let servers = self.url.server_list();
            Err(Fault::Unavailable(format!("{servers}: another process keeps creating znodes in {}", self.url.root())))
        })
    }

    /// One pass: lists everything, and deletes children before their parents. Returns whether nothing is left.
    async fn delete_once(&self, session: &ZooKeeperSession) -> Result<bool, Fault> {
        session.sync().await?;
        let mut found = vec![self.url.root().to_owned()];
        let mut listed = 0;
        while listed < found.len() {
            let part = found[listed..found.len().min(listed + BATCH)].to_vec();
            listed += part.len();
            for (parent, names) in part.iter().zip(session.children(&part).await?) {
                found.extend(names.into_iter().map(|name| format!("{parent}/{name}")));
            }
        }
        found.reverse();
        for part in found.chunks(BATCH) {
            let delete = |path: &String| ZnodeWrite::Delete { path: path.clone(), version: None };
            let deletions: Vec<ZnodeWrite> = part.iter().map(delete).collect();
            match session.write(&deletions).await {
                Ok(_) => {}
                Err(WriteFailure::Refused(_)) => return Ok(false),
                Err(WriteFailure::Fault(fault)) => return Err(as_unsent(fault)),
            }
        }
        Ok(true)
    }
}
