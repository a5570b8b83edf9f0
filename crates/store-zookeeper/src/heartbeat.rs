//! Heartbeats: a node stores that it is alive and renews the locks of its runs, in one transaction.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey, RecordVersion};
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::Fault;
use cronhold_store_remote::faults::as_unsent;
use tokio::time;

use crate::ensemble::Ensemble;
use crate::known_znodes::{KnownZnode, KnownZnodes};
use crate::paths::RecordPlace;
use crate::wire::{WriteFailure, Znode, ZnodeStat, ZnodeWrite, ZooKeeperSession};
use crate::{lock_text, record_text};

/// How often a heartbeat is repeated because a command has changed the node, or a lock was released.
const ATTEMPTS_MAX: usize = 32;

/// Bytes of one transaction, at most.
const BYTES_MAX: usize = 700_000;

/// The number of the store itself among the writers, for records that no unit writes.
const STORE_WRITER: u32 = 0;

/// Locks with the runs that hold them.
type HeldLocks = Vec<(LockName, RunId)>;

/// Writes heartbeats.
#[derive(Debug)]
pub(crate) struct HeartbeatTransaction {
    ensemble: Arc<Ensemble>,
    known: Arc<KnownZnodes>,
    zones: Arc<ZoneRegistry>,
}

impl HeartbeatTransaction {
    pub(crate) fn new(ensemble: Arc<Ensemble>, known: Arc<KnownZnodes>, zones: Arc<ZoneRegistry>) -> Self {
        Self { ensemble, known, zones }
    }

    /// Stores a node and renews its locks. Returns the locks that it has lost.
    pub(crate) async fn write(&self, node: &NodeRecord, locks: &HeldLocks) -> Result<HeldLocks, Fault> {
        let session = self.ensemble.session().await?;
        let key = RecordKey::Node(node.id);
        let node_path = self.ensemble.paths().record(&key).expect("a node has a znode");
        let mut paths = vec![node_path.clone()];
        paths.extend(locks.iter().map(|(name, _)| self.ensemble.paths().lock(name)));
        for _ in 0..ATTEMPTS_MAX {
            let found = session.read(&paths, true).await?;
            let stats: Vec<ZnodeStat> = found.iter().skip(1).flatten().map(|znode| znode.stat).collect();
            let now = self.ensemble.time_after(&stats).await?;
            let mut writes = vec![self.write_of_node(node, &node_path, found[0].as_ref())];
            let mut lost = HeldLocks::new();
            for ((lock, path), znode) in locks.iter().zip(&paths[1..]).zip(&found[1..]) {
                match self.renewal(lock, path, znode.as_ref(), now) {
                    // A lock can be named for several runs, of which one holds it.
                    Some(renewal) if !writes.contains(&renewal) => writes.push(renewal),
                    Some(_) => {}
                    None => lost.push(lock.clone()),
                }
            }
            let sent = time::Instant::now();
            match write_parts(&session, writes, self.ensemble.url().request_bytes_max()).await {
                Ok(stats) => {
                    // The locks have the time of the node's record, so the next heartbeat needs no other.
                    if let Some(stat) = stats.first().copied().flatten() {
                        self.ensemble.clock().observe(&stat, sent, time::Instant::now());
                    }
                    let version = found[0].as_ref().map_or(0, |znode| znode.stat.version.wrapping_add(1));
                    let znode = KnownZnode { data_version: Some(version), version: Some(version_of(Some(version))) };
                    self.known.extend([(key, znode)]);
                    return Ok(lost);
                }
                Err(WriteFailure::Refused(_)) => {}
                Err(WriteFailure::Fault(fault)) => return Err(as_unsent(fault)),
            }
        }
        Err(Fault::Unavailable(format!("other processes keep changing the record of node {}", node.name)))
    }

    /// Only units change the drain flag, so a heartbeat of the same incarnation keeps it.
    fn write_of_node(&self, node: &NodeRecord, path: &str, found: Option<&Znode>) -> ZnodeWrite {
        let place = RecordPlace::Key(RecordKey::Node(node.id));
        let stored = found.and_then(|znode| record_text::decode(&place, path, &znode.data, &self.zones).ok().flatten());
        let draining = match stored.map(|stored| stored.record) {
            Some(Record::Node(old)) if old.incarnation == node.incarnation => old.draining,
            _ => node.draining,
        };
        let version = found.map(|znode| znode.stat.version);
        let record = Record::Node(Arc::new(NodeRecord { draining, ..node.clone() }));
        let data = record_text::encode(version_of(version.map(|version| version.wrapping_add(1))), &record);
        match version {
            Some(version) => ZnodeWrite::Set { path: path.to_owned(), data, version: Some(version) },
            None => ZnodeWrite::Create { path: path.to_owned(), data, is_ephemeral: false },
        }
    }

    /// Renews a lock, so that its time to live starts again. Returns `None` if the run does not hold it, or if the lock
    /// cannot be read.
    fn renewal(
        &self,
        (name, holder): &(LockName, RunId),
        path: &str,
        found: Option<&Znode>,
        now: Instant,
    ) -> Option<ZnodeWrite> {
        let znode = found?;
        let end = |ttl| self.ensemble.clock().end_of_lock(&znode.stat, ttl);
        let mut entry = lock_text::decode(name, path, &znode.data, end).ok().flatten()?;
        let renewed = entry.renew(*holder, now);
        let (path, version) = (path.to_owned(), Some(znode.stat.version));
        renewed.then(|| ZnodeWrite::Set { path, data: lock_text::encode(&entry), version })
    }
}

/// Writes the record of the node and the locks, in several transactions if they are too large for one. Returns the states
/// of the znodes of the first one, which has the record.
async fn write_parts(
    session: &ZooKeeperSession,
    writes: Vec<ZnodeWrite>,
    bytes_max: usize,
) -> Result<Vec<Option<ZnodeStat>>, WriteFailure> {
    let mut first = None;
    let mut part = Vec::new();
    let mut bytes = 0;
    for write in writes {
        let more = write.bytes();
        if bytes + more > bytes_max.min(BYTES_MAX) && !part.is_empty() {
            let stats = session.write(&std::mem::take(&mut part)).await?;
            first.get_or_insert(stats);
            bytes = 0;
        }
        bytes += more;
        part.push(write);
    }
    let stats = session.write(&part).await?;
    Ok(first.unwrap_or(stats))
}

/// The version of a node's record: its znode counts the heartbeats.
fn version_of(data_version: Option<i32>) -> RecordVersion {
    let number = data_version.and_then(|version| u64::try_from(version).ok()).unwrap_or(0);
    RecordVersion::new(STORE_WRITER, number)
}
