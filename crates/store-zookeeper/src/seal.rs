//! The seal of a store: a znode that is empty unless the store is sealed. Every transaction that changes something checks
//! its data version, so that none takes effect after the store was sealed.

use std::sync::Mutex;

use cronhold_store::{Fault, lock_mutex};

use crate::faults;
use crate::wire::{Znode, ZnodeStat, ZnodeWrite, ZooKeeperSession};

/// What is known of the seal.
#[derive(Debug)]
pub(crate) struct ZnodeSeal {
    path: String,
    state: Mutex<Option<SealState>>,
}

#[derive(Debug, Clone)]
struct SealState {
    version: i32,
    /// Why the store is sealed.
    reason: Option<String>,
}

impl ZnodeSeal {
    pub(crate) fn new(path: String) -> Self {
        Self { path, state: Mutex::default() }
    }

    /// Why the store is sealed, as far as this process knows.
    pub(crate) fn reason(&self) -> Option<String> {
        lock_mutex(&self.state).as_ref()?.reason.clone()
    }

    /// The operation that fails if the store is sealed. With `is_fresh`, the seal is read now. Fails if the store is sealed.
    pub(crate) async fn check(&self, session: &ZooKeeperSession, is_fresh: bool) -> Result<ZnodeWrite, Fault> {
        let known = lock_mutex(&self.state).clone().filter(|state| !is_fresh && state.reason.is_none());
        let state = match known {
            Some(state) => state,
            None => self.read(session).await?,
        };
        match state.reason {
            Some(reason) => Err(Fault::sealed(&reason)),
            None => Ok(ZnodeWrite::Check { path: self.path.clone(), version: state.version }),
        }
    }

    /// Takes note of the seal as it was read.
    pub(crate) fn learn(&self, found: Option<Znode>) -> Result<(), Fault> {
        self.update(found).map(drop)
    }

    /// Seals the store, or unseals it.
    pub(crate) async fn set(&self, session: &ZooKeeperSession, reason: Option<&str>) -> Result<(), Fault> {
        let ZnodeStat { version, .. } = session.set(&self.path, reason.unwrap_or_default().as_bytes()).await?;
        let reason = reason.filter(|reason| !reason.is_empty()).map(str::to_owned);
        *lock_mutex(&self.state) = Some(SealState { version, reason });
        Ok(())
    }

    async fn read(&self, session: &ZooKeeperSession) -> Result<SealState, Fault> {
        self.update(session.read(std::slice::from_ref(&self.path), true).await?.pop().flatten())
    }

    fn update(&self, found: Option<Znode>) -> Result<SealState, Fault> {
        let znode = found.ok_or_else(|| faults::unexpected(&self.path, "the znode was deleted"))?;
        let text = String::from_utf8_lossy(&znode.data).into_owned();
        let state = SealState { version: znode.stat.version, reason: Some(text).filter(|text| !text.is_empty()) };
        *lock_mutex(&self.state) = Some(state.clone());
        Ok(state)
    }
}
