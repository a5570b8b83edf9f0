//! The lock `/joblock`, by ZooKeeper's usual recipe: each waiter creates an ephemeral, numbered child, and the one with
//! the lowest number has the lock. Names have the form of go-zookeeper, so that its clients and Cronhold wait in one
//! queue. Only the number at the end of a name counts, so that other clients can use the lock too.

use std::sync::Arc;
use std::time::Duration;

use cronhold_store::Fault;
use cronhold_store_remote::faults::as_unsent;
use tokio::time::{Instant, timeout};

use crate::ensemble::{Ensemble, random};
use crate::wire::{WatchReport, WriteFailure, ZnodeWrite, ZooKeeperSession};

/// Digits of the number at the end of a name.
const DIGITS: usize = 10;

/// How often the queue is read again at the latest. Servers report a change at once, except after a lost connection.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The lock while this process holds it. It must be released; if the process ends, its session releases it.
#[derive(Debug)]
pub(super) struct JobLock {
    session: Arc<ZooKeeperSession>,
    path: String,
}

impl JobLock {
    /// Waits for the lock. `None` if it is still held by another client after `wait`.
    pub(super) async fn acquire(
        ensemble: &Ensemble,
        session: &Arc<ZooKeeperSession>,
        wait: Duration,
    ) -> Result<Option<Self>, Fault> {
        let folder = ensemble.paths().castle_job_lock();
        let token = format!("_c_{:016x}{:016x}-lock-", random()?, random()?);
        let path = match session.create_numbered(&format!("{folder}/{token}")).await {
            Ok(path) => path,
            // The znode may have been created all the same.
            Err(Fault::OutcomeUnknown(why)) => match find_own(session, &folder, &token).await? {
                Some(path) => path,
                None => return Err(Fault::Unavailable(why)),
            },
            Err(Fault::Permanent(_)) => {
                ensemble.create_folders(session).await?;
                session.create_numbered(&format!("{folder}/{token}")).await.map_err(as_unsent)?
            }
            Err(fault) => return Err(fault),
        };
        let lock = Self { session: Arc::clone(session), path };
        match timeout(wait, lock.wait_for_turn(&folder)).await {
            Ok(Ok(())) => Ok(Some(lock)),
            Ok(Err(fault)) => {
                lock.release().await?;
                Err(fault)
            }
            Err(_) => {
                lock.release().await?;
                Ok(None)
            }
        }
    }

    /// Waits until no other child of the folder has a lower number.
    async fn wait_for_turn(&self, folder: &str) -> Result<(), Fault> {
        let own = number_of(&self.path);
        loop {
            let names = self.session.children(&[folder.to_owned()]).await?;
            let names = names.into_iter().flatten();
            let before = names.filter(|name| number_of(name) < own && number_of(name).is_some());
            let Some(before) = before.max_by_key(|name| number_of(name)) else { return Ok(()) };
            self.wait_until_changed(&format!("{folder}/{before}")).await?;
        }
    }

    /// Waits until a znode has changed, or for a while.
    async fn wait_until_changed(&self, path: &str) -> Result<(), Fault> {
        let end = Instant::now() + LOOK_AGAIN;
        let mut watch = self.session.watch(path).await?;
        if self.session.owner(path).await?.is_none() {
            return Ok(());
        }
        while let Ok(report) = tokio::time::timeout_at(end, watch.next()).await {
            if report != WatchReport::Interrupted {
                break;
            }
        }
        Ok(())
    }

    /// Releases the lock.
    pub(super) async fn release(self) -> Result<(), Fault> {
        let delete = ZnodeWrite::Delete { path: self.path.clone(), version: None };
        match self.session.write(&[delete]).await {
            // It is gone if the session was replaced, or if another client has deleted it.
            Ok(_) | Err(WriteFailure::Refused(_)) => Ok(()),
            Err(WriteFailure::Fault(fault)) => Err(as_unsent(fault)),
        }
    }
}

/// The child that this process has created without getting the reply.
async fn find_own(session: &ZooKeeperSession, folder: &str, token: &str) -> Result<Option<String>, Fault> {
    session.sync().await?;
    let names = session.children(&[folder.to_owned()]).await?;
    let own = names.into_iter().flatten().find(|name| name.starts_with(token));
    Ok(own.map(|name| format!("{folder}/{name}")))
}

/// The number at the end of a name.
fn number_of(name: &str) -> Option<u64> {
    let start = name.len().checked_sub(DIGITS)?;
    let digits = name.get(start..)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_read_from_the_names_of_all_clients() {
        let go = "_c_6b7e1f0a2c3d4e5f6071829304a5b6c7-lock-0000000012";
        let python = "6b7e1f0a2c3d4e5f6071829304a5b6c7__lock__0000000011";
        assert_eq!((number_of(go), number_of(python)), (Some(12), Some(11)));
        assert_eq!((number_of("note"), number_of("a-lock-12"), number_of("übergrößenö")), (None, None, None));
    }
}
