//! The locks that decide which node applies a directory. Nodes that share a store may have directories with the same
//! prefix and different files. The node that holds the lock of the prefix applies its directory. The other nodes read
//! their files and report mistakes. If the holder does not renew the lock before it expires, another node takes over.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use cronhold_core::command::Command;
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Actor, LockName, Record, RecordKey};
use cronhold_core::{NodeId, RunId};
use cronhold_engine::{MachineClock, NodeHandle, RequestError};
use cronhold_jobfile::directory::JobsRoot;
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Store};

use super::{JobDirectories, plan};
use crate::log::Weight;

/// After this long without a renewal, the lock of a directory expires. The node renews it with each heartbeat.
const TTL: Span = Span::from_secs(30);

/// The locks of all directories of a node, and the holder under which the node acquires them. The holder stays the same
/// across restarts.
#[derive(Debug)]
pub struct LoaderLocks {
    holder: RunId,
    locks: Vec<LockName>,
}

/// The last known state of the lock of a directory.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LoaderLockState {
    /// The fence under which this node holds the lock; `None` if it does not hold it.
    fence: Option<u64>,
    /// Whether the log says that this node does not hold the lock.
    is_logged: bool,
}

/// The reply to a request for a lock.
enum LockReply {
    /// This node holds the lock, under this fence.
    Held(u64),
    /// Another holder has the lock.
    Other(RunId),
    /// The request failed, for this reason.
    Failed(String),
    /// The node is stopping.
    Stopping,
}

impl LoaderLocks {
    /// The locks of a node for its directories.
    pub(super) fn new(node: NodeId, roots: &[JobsRoot]) -> Self {
        let locks = roots.iter().map(lock).collect();
        Self { holder: RunId::from_key(Instant::EPOCH, &format!("loader on node {node}")), locks }
    }

    /// Releases all locks that this node holds, so that other nodes need not wait for them to expire. All requests are
    /// sent before the first await, so that a node that is stopped right afterwards still handles them.
    pub async fn release_all(&self, node: &NodeHandle) {
        let release = |lock: &LockName| {
            let command = Command::ReleaseLock { lock: lock.clone(), holder: self.holder };
            Box::pin(node.request(Actor::JobFiles, command)) as Pin<Box<dyn Future<Output = _>>>
        };
        let mut requests: Vec<_> = self.locks.iter().map(release).collect();
        poll_fn(|context| {
            requests.retain_mut(|request| request.as_mut().poll(context).is_pending());
            if requests.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl JobDirectories {
    /// The locks of the directories, which the daemon releases when it stops.
    pub fn loaders(&self) -> Arc<LoaderLocks> {
        Arc::clone(&self.loaders)
    }

    /// Acquires or renews the locks of all directories. Returns whether this node acquired a lock that it did not hold.
    /// In that case other nodes may have changed the stored jobs, and they are read again.
    pub async fn acquire_locks(&mut self, node: &NodeHandle, store: &dyn Store, clock: &dyn MachineClock) -> bool {
        let is_shared = store.is_shared();
        let before = self.lock_states.clone();
        for (root, state) in before.iter().enumerate() {
            // If the store is not shared, no other node can take the lock.
            if is_shared || state.fence.is_none() {
                let reply = self.request_lock(root, node, store, clock).await;
                self.set_lock_state(root, reply);
            }
        }
        let is_new =
            |(now, before): (&LoaderLockState, &LoaderLockState)| now.fence.is_some() && now.fence != before.fence;
        if !self.lock_states.iter().zip(&before).any(is_new) {
            return false;
        }
        if is_shared && let Err(fault) = self.load_stored(store).await {
            let message = format!("{}: cannot read the stored jobs: {fault}", self.shown());
            self.log.emit(Weight::Trouble, "job_files_unknown", message);
            // With the old state, the next call tries again.
            self.lock_states = before;
            return false;
        }
        true
    }

    /// Whether this node applies a directory.
    pub(super) fn holds(&self, root: usize) -> bool {
        self.lock_states[root].fence.is_some()
    }

    /// Whether this node applies any directory.
    pub(super) fn holds_any(&self) -> bool {
        self.lock_states.iter().any(|state| state.fence.is_some())
    }

    /// A message for each directory that another node applies.
    pub(super) fn left_to_others(&self) -> Vec<String> {
        let roots = self.live.roots().zip(&self.lock_states).filter(|(_, state)| state.fence.is_none());
        roots.map(|(root, _)| format!("{} are loaded by another node", jobs_of(root))).collect()
    }

    async fn request_lock(
        &self,
        root: usize,
        node: &NodeHandle,
        store: &dyn Store,
        clock: &dyn MachineClock,
    ) -> LockReply {
        let (lock, holder) = (self.loaders.locks[root].clone(), self.loaders.holder);
        let acquire = Command::AcquireLock { lock: lock.clone(), holder, ttl: TTL };
        let mut reply = send_command(acquire.clone(), node, clock).await;
        if let LockReply::Other(other) = reply
            && !store.is_shared()
        {
            // Another node held the lock before the store was moved here. It cannot use this store.
            send_command(Command::ReleaseLock { lock: lock.clone(), holder: other }, node, clock).await;
            reply = send_command(acquire, node, clock).await;
        }
        match reply {
            LockReply::Held(_) => {
                fence(store, lock, holder).await.unwrap_or_else(|fault| LockReply::Failed(fault.to_string()))
            }
            other => other,
        }
    }

    fn set_lock_state(&mut self, index: usize, reply: LockReply) {
        let Some(jobs) = self.live.roots().nth(index).map(jobs_of) else { return };
        let was_logged = self.lock_states[index].is_logged;
        let (fence, is_logged, event) = match reply {
            LockReply::Held(fence) => {
                let message = format!("{jobs} are loaded by this node from now on");
                (Some(fence), false, was_logged.then_some(("loader_taken_over", message)))
            }
            LockReply::Other(_) => {
                let message = format!("{jobs} are loaded by another node");
                (None, true, (!was_logged).then_some(("loader_elsewhere", message)))
            }
            LockReply::Failed(why) => {
                let message = format!("cannot determine which node loads {jobs}: {why}");
                (None, true, (!was_logged).then_some(("loader_unknown", message)))
            }
            LockReply::Stopping => (None, was_logged, None),
        };
        self.lock_states[index] = LoaderLockState { fence, is_logged };
        if let Some((event, message)) = event {
            self.log.emit(Weight::Usual, event, message);
        }
    }
}

/// Sends a command for a lock to the node, and retries after transient failures.
async fn send_command(command: Command, node: &NodeHandle, clock: &dyn MachineClock) -> LockReply {
    match plan::send_commands(vec![command], node, clock).await.pop() {
        Some((_, Ok(_))) => LockReply::Held(0),
        Some((_, Err(RequestError::Rejected(Rejection::Locked { holder, .. })))) => LockReply::Other(holder),
        Some((_, Err(refused))) => LockReply::Failed(refused.to_string()),
        None => LockReply::Stopping,
    }
}

/// The fence of a lock that was just acquired. It has changed if another node has held the lock in the meantime.
async fn fence(store: &dyn Store, lock: LockName, holder: RunId) -> Result<LockReply, Fault> {
    let found = store.load(&[RecordKey::Lock(lock)]).await?.into_iter().flatten().next();
    Ok(match found.map(|stored| stored.record) {
        Some(Record::Lock(lock)) if lock.holder == holder => LockReply::Held(lock.fence),
        Some(Record::Lock(lock)) => LockReply::Other(lock.holder),
        _ => LockReply::Failed("its lock has expired".to_owned()),
    })
}

/// The lock of a directory. Its name contains `#`, which no job id does, so it never equals the lock of a job.
fn lock(root: &JobsRoot) -> LockName {
    let prefix = root.prefix.as_deref().unwrap_or_default();
    LockName::parse(&format!("#cronhold/loader/{prefix}"))
        .expect("a prefix is a valid id, which is short enough for a lock name")
}

/// The jobs of a directory, as text for messages.
fn jobs_of(root: &JobsRoot) -> String {
    match &root.prefix {
        Some(prefix) => format!("jobs below {prefix}/"),
        None => "jobs without a prefix".to_owned(),
    }
}
