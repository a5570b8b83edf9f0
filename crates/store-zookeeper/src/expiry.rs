//! Deletes what nothing needs any more: fences of locks that are free, marks that have expired, and znodes of records
//! that were deleted.

use cronhold_core::record::LockName;
use cronhold_schedule::{Instant, Span};
use cronhold_store::Fault;
use cronhold_store_remote::faults::as_unsent;

use crate::ensemble::Ensemble;
use crate::lock_text;
use crate::paths::ZnodePaths;
use crate::wire::{WriteFailure, Znode, ZnodeStat, ZnodeWrite, ZooKeeperSession};

/// Znodes that are read in one request.
const BATCH: usize = 500;

/// How long an emptied znode is kept. It must be longer than any process relies on what it knows about a znode; see
/// `known_znodes.rs`.
const EMPTIED_KEPT: Span = Span::from_secs(3_600);

/// Deletes fences of locks that are free and were last taken before a time, and marks that have expired. They are emptied
/// first, because the data version of a new znode could be mistaken for that of the old one.
pub(crate) async fn expire_locks(ensemble: &Ensemble, before: Instant) -> Result<(), Fault> {
    let session = ensemble.session().await?;
    let seal = ensemble.seal().check(&session, true).await?;
    let now = ensemble.lock_time().await?;
    let names = session.children(&[ensemble.paths().locks()]).await?;
    let locks: Vec<LockName> = names.iter().flatten().filter_map(|name| ZnodePaths::lock_name(name)).collect();
    for locks in locks.chunks(BATCH) {
        let paths: Vec<String> = locks.iter().map(|name| ensemble.paths().lock(name)).collect();
        let found = session.read(&paths, true).await?;
        for ((name, path), znode) in locks.iter().zip(&paths).zip(found) {
            let Some(Znode { data, stat }) = znode else { continue };
            let end = |ttl| ensemble.clock().end_of_lock(&stat, ttl);
            match lock_text::decode(name, path, &data, end) {
                Ok(None) => delete_emptied(&session, &seal, path, &stat, now).await?,
                Ok(Some(entry)) if entry.is_expendable(name, before, now) => {
                    let version = Some(stat.version);
                    write_unless_changed(
                        &session,
                        &seal,
                        ZnodeWrite::Set { path: path.clone(), data: Vec::new(), version },
                    )
                    .await?;
                }
                // An unreadable lock is reported to those who take it.
                _ => {}
            }
        }
    }
    Ok(())
}

/// Deletes a znode that was emptied long ago, unless it has changed meanwhile.
pub(crate) async fn delete_emptied(
    session: &ZooKeeperSession,
    seal: &ZnodeWrite,
    path: &str,
    stat: &ZnodeStat,
    now: Instant,
) -> Result<(), Fault> {
    if stat.modified.plus(EMPTIED_KEPT) > now {
        return Ok(());
    }
    write_unless_changed(session, seal, ZnodeWrite::Delete { path: path.to_owned(), version: Some(stat.version) }).await
}

async fn write_unless_changed(session: &ZooKeeperSession, seal: &ZnodeWrite, write: ZnodeWrite) -> Result<(), Fault> {
    match session.write(&[write, seal.clone()]).await {
        Ok(_) | Err(WriteFailure::Refused(_)) => Ok(()),
        Err(WriteFailure::Fault(fault)) => Err(as_unsent(fault)),
    }
}
