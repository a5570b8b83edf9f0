//! Who applies the directories. Nodes that share a store may all have a directory, and perhaps not all the same one: a
//! directory with its prefix is applied by the node that holds its lock. The others read their files and show mistakes,
//! and one of them takes over when the holder was not heard of for as long as the lock lasts.

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

/// How long the lock of a directory lasts when its holder is not heard of. The node renews it with each beat.
const TTL: Span = Span::from_secs(30);

/// The locks of all directories, and in whose name this node holds them. All lives of a node have the same name.
#[derive(Debug)]
pub struct LoaderLocks {
    holder: RunId,
    locks: Vec<LockName>,
}

/// What is known of the lock of a directory.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LoaderLockState {
    /// The fence under which this node holds it; nothing, when it does not.
    fence: Option<u64>,
    /// Whether it was said that another node has it.
    was_said: bool,
}

/// What came of asking for a lock.
enum LockReply {
    /// This node holds it, under a fence.
    Held(u64),
    /// Somebody else does.
    Other(RunId),
    /// Nobody can say.
    Failed(String),
    /// The node stops.
    Stopping,
}

impl LoaderLocks {
    /// The locks of a node for its directories.
    pub(super) fn new(node: NodeId, roots: &[JobsRoot]) -> Self {
        let locks = roots.iter().map(lock).collect();
        Self { holder: RunId::from_key(Instant::EPOCH, &format!("loader on node {node}")), locks }
    }

    /// Frees all locks that this node holds, so that others need not wait. All of it is asked for before this first
    /// waits, so that a node that is told to stop right afterwards still does it.
    pub async fn let_go(&self, node: &NodeHandle) {
        let ask = |lock: &LockName| {
            let command = Command::ReleaseLock { lock: lock.clone(), holder: self.holder };
            Box::pin(node.request(Actor::JobFiles, command)) as Pin<Box<dyn Future<Output = _>>>
        };
        let mut asked: Vec<_> = self.locks.iter().map(ask).collect();
        poll_fn(|context| {
            asked.retain_mut(|answer| answer.as_mut().poll(context).is_pending());
            if asked.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl JobDirectories {
    /// The locks of the directories, for whoever stops the node.
    pub fn loaders(&self) -> Arc<LoaderLocks> {
        Arc::clone(&self.loaders)
    }

    /// Asks for the locks of all directories. Answers whether this node has got one that it did not have: then others may
    /// have changed what is stored, and it is looked at again.
    pub async fn hold(&mut self, node: &NodeHandle, store: &dyn Store, clock: &dyn MachineClock) -> bool {
        let is_shared = store.is_shared();
        let before = self.standings.clone();
        for (root, standing) in before.iter().enumerate() {
            // Where a node is alone nobody can take it away.
            if is_shared || standing.fence.is_none() {
                let asked = self.ask_for(root, node, store, clock).await;
                self.note_standing(root, asked);
            }
        }
        let is_new =
            |(now, before): (&LoaderLockState, &LoaderLockState)| now.fence.is_some() && now.fence != before.fence;
        if !self.standings.iter().zip(&before).any(is_new) {
            return false;
        }
        if is_shared && let Err(fault) = self.look_up(store).await {
            let words = format!("{}: what is stored is not known: {fault}", self.shown());
            self.log.emit(Weight::Trouble, "job_files_unknown", words);
            // As if nothing had been asked for, so that it is looked at the next time.
            self.standings = before;
            return false;
        }
        true
    }

    /// Whether this node applies a directory.
    pub(super) fn holds(&self, root: usize) -> bool {
        self.standings[root].fence.is_some()
    }

    /// Whether it applies any.
    pub(super) fn holds_any(&self) -> bool {
        self.standings.iter().any(|standing| standing.fence.is_some())
    }

    /// What is to be said of directories that another node applies.
    pub(super) fn left_to_others(&self) -> Vec<String> {
        let roots = self.live.roots().zip(&self.standings).filter(|(_, standing)| standing.fence.is_none());
        roots.map(|(root, _)| format!("{} are loaded by another node", jobs_of(root))).collect()
    }

    async fn ask_for(&self, root: usize, node: &NodeHandle, store: &dyn Store, clock: &dyn MachineClock) -> LockReply {
        let (lock, holder) = (self.loaders.locks[root].clone(), self.loaders.holder);
        let take = Command::AcquireLock { lock: lock.clone(), holder, ttl: TTL };
        let mut asked = give(take.clone(), node, clock).await;
        if let LockReply::Other(other) = asked
            && !store.is_shared()
        {
            // It was another node's when the store was elsewhere; here nobody else can be.
            give(Command::ReleaseLock { lock: lock.clone(), holder: other }, node, clock).await;
            asked = give(take, node, clock).await;
        }
        match asked {
            LockReply::Held(_) => {
                fence(store, lock, holder).await.unwrap_or_else(|fault| LockReply::Failed(fault.to_string()))
            }
            other => other,
        }
    }

    fn note_standing(&mut self, index: usize, asked: LockReply) {
        let Some(jobs) = self.live.roots().nth(index).map(jobs_of) else { return };
        let was_said = self.standings[index].was_said;
        let (fence, is_said, words) = match asked {
            LockReply::Held(fence) => {
                let words = format!("{jobs} are loaded by this node from now on");
                (Some(fence), false, was_said.then_some(("loader_taken_over", words)))
            }
            LockReply::Other(_) => {
                let words = format!("{jobs} are loaded by another node");
                (None, true, (!was_said).then_some(("loader_elsewhere", words)))
            }
            LockReply::Failed(why) => {
                let words = format!("it is not known who loads {jobs}: {why}");
                (None, true, (!was_said).then_some(("loader_unknown", words)))
            }
            LockReply::Stopping => (None, was_said, None),
        };
        self.standings[index] = LoaderLockState { fence, was_said: is_said };
        if let Some((event, words)) = words {
            self.log.emit(Weight::Usual, event, words);
        }
    }
}

/// Asks the node for something about a lock, again and again while that may help.
async fn give(command: Command, node: &NodeHandle, clock: &dyn MachineClock) -> LockReply {
    match plan::ask(vec![command], node, clock).await.pop() {
        Some((_, Ok(_))) => LockReply::Held(0),
        Some((_, Err(RequestError::Rejected(Rejection::Locked { holder, .. })))) => LockReply::Other(holder),
        Some((_, Err(refused))) => LockReply::Failed(refused.to_string()),
        None => LockReply::Stopping,
    }
}

/// The fence of a lock that was just taken. It is another one when somebody else has had the lock meanwhile.
async fn fence(store: &dyn Store, lock: LockName, holder: RunId) -> Result<LockReply, Fault> {
    let found = store.load(&[RecordKey::Lock(lock)]).await?.into_iter().flatten().next();
    Ok(match found.map(|stored| stored.record) {
        Some(Record::Lock(lock)) if lock.holder == holder => LockReply::Held(lock.fence),
        Some(Record::Lock(lock)) => LockReply::Other(lock.holder),
        _ => LockReply::Failed("its lock has run out".to_owned()),
    })
}

/// The lock of a directory. No id of a job has a `#` in it, so that it is not the lock of a job.
fn lock(root: &JobsRoot) -> LockName {
    let prefix = root.prefix.as_deref().unwrap_or_default();
    LockName::parse(&format!("#cronhold/loader/{prefix}")).expect("a prefix is an id, and they are shorter")
}

/// The jobs of a directory, for people.
fn jobs_of(root: &JobsRoot) -> String {
    match &root.prefix {
        Some(prefix) => format!("jobs below {prefix}/"),
        None => "jobs without a prefix".to_owned(),
    }
}
