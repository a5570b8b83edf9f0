//! Heartbeats: a node stores that it is alive and renews the locks of its runs. At the interval `heartbeat` of the URL
//! it also does the periodic work: keys for Cronken's clients, the number of replicas, and a part of the journal check.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey};
use cronhold_core::{NodeId, RunId};
use cronhold_store::lock_mutex;
use cronhold_store::{Fault, HandleId, Hint};
use cronhold_store_records::encode_body;
use redis::Value;
use tokio::time::Instant;

use crate::client::NamespaceClient;
use crate::connections::Script;
use crate::cronken::{NodePresence, PeerFlag, Projector};
use crate::notifications;
use crate::replication::Replication;
use crate::reply;
use crate::rollback_recovery::{RedisRecovery, check_reply, lock_millis, position_args};
use crate::url::RedisUrl;

static HEARTBEAT: LazyLock<Script> = LazyLock::new(|| Script::on_namespace(&[include_str!("scripts/heartbeat.lua")]));

/// Writes heartbeats, and runs the periodic work that goes with them.
#[derive(Debug)]
pub(crate) struct HeartbeatWriter {
    client: Arc<NamespaceClient>,
    recovery: Arc<RedisRecovery>,
    replication: Arc<Replication>,
    peers: Arc<PeerFlag>,
    projector: Arc<Projector>,
    presence: NodePresence,
    /// How often the periodic work runs.
    maintenance_interval: Duration,
    /// When it last ran for each node of this process.
    last_maintenance: Mutex<BTreeMap<NodeId, Instant>>,
}

impl HeartbeatWriter {
    pub(crate) fn new(
        client: Arc<NamespaceClient>,
        recovery: Arc<RedisRecovery>,
        replication: Arc<Replication>,
        peers: Arc<PeerFlag>,
        projector: Arc<Projector>,
        url: &RedisUrl,
    ) -> Self {
        Self {
            presence: NodePresence::new(Arc::clone(&client), Arc::clone(&peers), url),
            client,
            recovery,
            replication,
            peers,
            projector,
            maintenance_interval: url.settings.heartbeat,
            last_maintenance: Mutex::default(),
        }
    }

    /// Stores a node and renews its locks. Returns the locks that it has lost.
    pub(crate) async fn write(
        &self,
        by: HandleId,
        node: NodeRecord,
        locks: Vec<(LockName, RunId)>,
    ) -> Result<Vec<(LockName, RunId)>, Fault> {
        self.projector.learn_node_name(&node);
        // A lock that was renewed only on a server that fails then was not renewed.
        let trailing = if locks.is_empty() { Vec::new() } else { self.replication.wait_command() };
        let was_enrolled = self.peers.is_enrolled();
        let mut called = self.client.call_batch(&HEARTBEAT, vec![self.call_args(by, &node, &locks)], trailing).await;
        self.replication.record_wait(&called.trailing);
        let reply = reply::list(called.replies.pop().expect("each call has a reply")?)?;
        let mut reply = check_reply(&self.recovery, reply).await?.into_iter();
        self.recovery.observe_seq(reply::number(&reply.next().unwrap_or(Value::Nil))?.cast_unsigned());
        let has_peers = reply::number(&reply.next().unwrap_or(Value::Nil))? != 0;
        self.peers.observe_flag(has_peers, was_enrolled);
        let lost = reply.map(|index| {
            let index = reply::number(&index)?;
            let lock = usize::try_from(index).ok().and_then(|index| locks.get(index));
            lock.cloned().ok_or_else(|| reply::unexpected("a lock index", &Value::Int(index)))
        });
        let lost = lost.collect::<Result<_, Fault>>()?;
        if self.start_maintenance(node.id, Instant::now()) {
            self.maintain(&node).await;
        }
        Ok(lost)
    }

    fn call_args(&self, by: HandleId, node: &NodeRecord, locks: &[(LockName, RunId)]) -> Vec<Vec<u8>> {
        let (position, seq) = position_args(&self.recovery);
        let mut hints = Vec::new();
        notifications::write_hint(&Hint::new(RecordKey::Node(node.id)), &mut hints);
        let mut args = vec![
            self.client.namespace_arg(),
            position.into_bytes(),
            seq.to_string().into_bytes(),
            notifications::handle_text(by).into_bytes(),
            node.id.to_string().into_bytes(),
            encode_body(&Record::Node(node.clone().into())),
            hints,
        ];
        for (name, holder) in locks {
            args.push(name.as_str().as_bytes().to_vec());
            args.push(holder.to_string().into_bytes());
            args.push(lock_millis(&self.recovery, name, *holder).to_string().into_bytes());
        }
        args
    }

    /// Whether the periodic work of a node is due. If so, it counts as done from now on.
    fn start_maintenance(&self, node: NodeId, now: Instant) -> bool {
        let mut last = self.last_maintenance();
        let is_due = last.get(&node).is_none_or(|last| now.duration_since(*last) >= self.maintenance_interval);
        if is_due {
            last.insert(node, now);
        }
        is_due
    }

    async fn maintain(&self, node: &NodeRecord) {
        match self.presence.refresh(node).await {
            Ok(refreshed) => self.projector.count_skipped(refreshed.skipped_writes),
            // The next heartbeat tries again.
            Err(_) => drop(self.last_maintenance().remove(&node.id)),
        }
        self.replication.recount(self.client.connections()).await;
        self.recovery.verify_some().await;
    }

    fn last_maintenance(&self) -> MutexGuard<'_, BTreeMap<NodeId, Instant>> {
        lock_mutex(&self.last_maintenance)
    }
}
