//! What a node writes for Cronken's clients at every `heartbeat` interval: that it and its runs are alive. It also
//! removes what dead nodes of Cronken have left behind. Our own heartbeats are separate and more frequent.

use std::net::{ToSocketAddrs, UdpSocket};
use std::sync::{Arc, LazyLock};

use cronhold_core::record::NodeRecord;
use cronhold_store::Fault;
use cronhold_store_remote::url::ServerAddress;

use super::{PROJECTION_SCRIPTS, PeerFlag};
use crate::client::NamespaceClient;
use crate::connections::Script;
use crate::outputs::read_reply;
use crate::url::RedisUrl;

/// The address of a machine without a route to the server.
const LOOPBACK: &str = "127.0.0.1";

static REFRESH: LazyLock<Script> = LazyLock::new(|| {
    Script::new(&[PROJECTION_SCRIPTS[0], PROJECTION_SCRIPTS[1], include_str!("scripts/presence.lua")])
});

/// Shows the nodes of this process to Cronken's clients.
#[derive(Debug)]
pub(crate) struct NodePresence {
    client: Arc<NamespaceClient>,
    peers: Arc<PeerFlag>,
    servers: Vec<ServerAddress>,
}

/// The result of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RefreshResult {
    /// Writes that were skipped because a key has the wrong type.
    pub(crate) skipped_writes: u64,
}

impl NodePresence {
    pub(crate) fn new(client: Arc<NamespaceClient>, peers: Arc<PeerFlag>, url: &RedisUrl) -> Self {
        Self { client, peers, servers: url.servers.clone() }
    }

    /// Refreshes what Cronken's clients see of a node.
    pub(crate) async fn refresh(&self, node: &NodeRecord) -> Result<RefreshResult, Fault> {
        let namespace = self.client.namespace();
        let servers = self.servers.clone();
        // Resolving a name may block.
        let address = tokio::task::spawn_blocking(move || own_address(&servers)).await;
        let address = address.unwrap_or_else(|_| LOOPBACK.to_owned());
        let instance = serde_json::json!({ "host": node.name, "ip": address }).to_string();
        let args = [
            namespace.to_owned(),
            self.peers.projection_settings().to_owned(),
            node.id.to_string(),
            instance,
            self.client.unique_token(),
        ];
        let args = args.into_iter().map(String::into_bytes).collect();
        let reply = self.client.connections().call_script(&REFRESH, &[format!("{namespace}:instances")], args).await?;
        // The first number counts the frozen runs of dead nodes that were ended.
        let (_, skipped_writes): (u64, u64) = read_reply(reply)?;
        Ok(RefreshResult { skipped_writes })
    }
}

/// The address from which this machine reaches the server. Connecting a UDP socket sends nothing.
fn own_address(servers: &[ServerAddress]) -> String {
    let local_address = |socket: UdpSocket| {
        let server = servers.first()?;
        let address =
            (server.host.as_str(), server.port).to_socket_addrs().ok()?.find(std::net::SocketAddr::is_ipv4)?;
        socket.connect(address).ok()?;
        socket.local_addr().ok().map(|own| own.ip().to_string())
    };
    UdpSocket::bind("0.0.0.0:0").ok().and_then(local_address).unwrap_or_else(|| LOOPBACK.to_owned())
}
