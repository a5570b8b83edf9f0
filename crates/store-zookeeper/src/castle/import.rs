//! Reads the znodes of a castle-cron that runs elsewhere, for an import. Creates and changes nothing.

use cronhold_store::Fault;
use tokio::runtime::Builder;

use crate::store::ZooKeeperOpenError;
use crate::url::ZooKeeperUrl;
use crate::wire::ZooKeeperSession;

/// Znodes of one read.
const READS_MAX: usize = 500;

/// A znode below `/jobs`, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawCastleJob {
    /// The name of the znode.
    pub name: String,
    /// castle-cron writes Go's gob, and Cronhold writes JSON.
    pub data: Vec<u8>,
}

/// Reads all jobs below the root of a URL. Blocks, and must not be called inside an executor.
pub fn read_castle_jobs(url: &ZooKeeperUrl) -> Result<Result<Vec<RawCastleJob>, Fault>, ZooKeeperOpenError> {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).thread_name("zookeeper").enable_all().build();
    Ok(runtime.map_err(ZooKeeperOpenError)?.block_on(read_all(url)))
}

async fn read_all(url: &ZooKeeperUrl) -> Result<Vec<RawCastleJob>, Fault> {
    let session = ZooKeeperSession::connect(url).await?;
    session.sync().await?;
    let folder = format!("{}/jobs", url.root());
    let Some(names) = session.find_children(std::slice::from_ref(&folder)).await?.pop().flatten() else {
        return Err(Fault::Permanent(format!("{}: there is no znode {folder}", url.server_list())));
    };
    let mut jobs = Vec::with_capacity(names.len());
    for names in names.chunks(READS_MAX) {
        let paths: Vec<String> = names.iter().map(|name| format!("{folder}/{name}")).collect();
        let found = session.read(&paths, false).await?;
        let found = names.iter().zip(found).filter_map(|(name, znode)| Some((name.clone(), znode?.data)));
        jobs.extend(found.map(|(name, data)| RawCastleJob { name, data }));
    }
    Ok(jobs)
}
