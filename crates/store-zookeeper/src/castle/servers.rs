//! `/servers`: an ephemeral znode for this node while it runs, and the list of all.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use cronhold_core::NodeId;
use cronhold_store::{Fault, NodeListChange, NodeRegistration, lock_mutex};
use cronhold_store_remote::faults::as_unsent;
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::CastleZnodes;
use crate::faults;
use crate::paths::unescape_name;
use crate::wire::{WriteFailure, WriteRefusalReason, ZnodeWrite, ZooKeeperSession};

/// What the data of a server's znode begins with, as castle-cron writes it.
const SERVER: &str = "castle-cron";

/// How often the znode of a server is read while other processes create and delete it.
const ATTEMPTS_MAX: usize = 16;

/// How often a name is tried again that a server had whose session may be about to end.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// What the session of a server that has crashed may outlive it by, beside its timeout.
const SESSION_MARGIN: Duration = Duration::from_secs(1);

/// The node that this process shows, and all servers that were reported.
#[derive(Debug, Default)]
pub(super) struct ServerRegistry {
    node: Mutex<Option<ShownNode>>,
    /// `None` before the first list.
    reported: Mutex<Option<BTreeSet<String>>>,
}

/// The node that this process shows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ShownNode {
    name: String,
    id: NodeId,
}

impl ShownNode {
    fn data(&self) -> String {
        format!("{SERVER} {}", self.id)
    }
}

impl CastleZnodes {
    /// Shows a node. Waits for a server with the same name that may just have crashed.
    pub(super) async fn register_server(
        &self,
        name: &str,
        id: NodeId,
        is_forced: bool,
    ) -> Result<NodeRegistration, Fault> {
        let node = ShownNode { name: name.to_owned(), id };
        let end = Instant::now() + self.ensemble.url().settings().timeout + SESSION_MARGIN;
        loop {
            let session = self.ensemble.session().await?;
            let Some(holder) = self.create_server(&session, &node, is_forced).await? else {
                *lock_mutex(&self.servers.node) = Some(node);
                return Ok(NodeRegistration::Registered);
            };
            if Instant::now() >= end {
                return Ok(NodeRegistration::NameTaken { holder });
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Shows the node again, for example in a new session.
    pub(super) async fn renew_server(&self, session: &ZooKeeperSession) -> Result<(), Fault> {
        let Some(node) = lock_mutex(&self.servers.node).clone() else { return Ok(()) };
        if let Some(holder) = self.create_server(session, &node, false).await? {
            warn!(event = "server_name_taken", name = node.name, "another server has the name {}: {holder}", node.name);
        }
        Ok(())
    }

    /// Removes the znode of the node.
    pub(super) async fn unregister_server(&self) -> Result<(), Fault> {
        let Some(node) = lock_mutex(&self.servers.node).take() else { return Ok(()) };
        let session = self.ensemble.session().await?;
        let path = self.ensemble.paths().castle_server(&node.name);
        if session.owner(&path).await? != Some(session.id()) {
            return Ok(());
        }
        match session.write(&[ZnodeWrite::Delete { path, version: None }]).await {
            Ok(_) | Err(WriteFailure::Refused(_)) => Ok(()),
            Err(WriteFailure::Fault(fault)) => Err(as_unsent(fault)),
        }
    }

    /// Creates the znode. Returns the data of the znode if another server has it.
    async fn create_server(
        &self,
        session: &ZooKeeperSession,
        node: &ShownNode,
        is_forced: bool,
    ) -> Result<Option<String>, Fault> {
        let path = self.ensemble.paths().castle_server(&node.name);
        let data = node.data().into_bytes();
        let create = ZnodeWrite::Create { path: path.clone(), data: data.clone(), is_ephemeral: true };
        let mut writes = vec![create.clone()];
        for _ in 0..ATTEMPTS_MAX {
            match session.write(&writes).await {
                Ok(_) => return Ok(None),
                Err(WriteFailure::Fault(Fault::OutcomeUnknown(_))) => {}
                Err(WriteFailure::Fault(fault)) => return Err(fault),
                Err(WriteFailure::Refused(refusal)) if refusal.reason == WriteRefusalReason::Missing => {
                    self.ensemble.create_folders(session).await?;
                }
                Err(WriteFailure::Refused(_)) => {}
            }
            writes = vec![create.clone()];
            let Some(found) = session.read(std::slice::from_ref(&path), true).await?.pop().flatten() else { continue };
            if session.owner(&path).await? == Some(session.id()) && found.data == data {
                return Ok(None);
            }
            if found.data != data && !is_forced {
                return Ok(Some(String::from_utf8_lossy(&found.data).into_owned()));
            }
            // An earlier session of this node has left it, or the operator takes the name over.
            writes.insert(0, ZnodeWrite::Delete { path: path.clone(), version: Some(found.stat.version) });
        }
        let servers = self.ensemble.url().server_list();
        Err(faults::unreachable(&servers, &format!("other processes keep changing the server {}", node.name)))
    }

    /// Reads the list of servers, and reports who has joined or left. Shows this node again if its znode was deleted.
    pub(super) async fn read_servers(&self, session: &ZooKeeperSession) -> Result<(), Fault> {
        let children = session.children(&[self.ensemble.paths().castle_servers()]).await?;
        let all: BTreeSet<String> = children.into_iter().flatten().map(|znode| unescape_name(&znode)).collect();
        let own = lock_mutex(&self.servers.node).as_ref().map(|node| node.name.clone());
        if own.is_some_and(|own| !all.contains(&own)) {
            self.renew_server(session).await?;
        }
        let before = lock_mutex(&self.servers.reported).replace(all.clone());
        let before = before.unwrap_or_default();
        let joined: Vec<String> = all.difference(&before).cloned().collect();
        let left: Vec<String> = before.difference(&all).cloned().collect();
        if !joined.is_empty() || !left.is_empty() {
            self.report_servers(NodeListChange { joined, left, all: all.into_iter().collect() });
        }
        Ok(())
    }
}
