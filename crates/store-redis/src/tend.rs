//! What a node does for Cronken's clients every `heartbeat`: it says that it and its runs are there, and takes away what
//! nodes of another kind have left behind. Apart from our own beats, which are more frequent and mean more.

use std::net::{ToSocketAddrs, UdpSocket};
use std::sync::LazyLock;

use cronhold_core::record::Node;
use cronhold_store::Fault;

use crate::link::{Link, Script};
use crate::outputs::read_answer;
use crate::projection::PARTS;
use crate::url::{RedisUrl, Server};

/// The address of a machine that reaches nobody.
const LOCAL: &str = "127.0.0.1";

static TEND: LazyLock<Script> = LazyLock::new(|| Script::new(&[PARTS[0], PARTS[1], include_str!("scripts/tend.lua")]));

/// What there was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tended {
    /// Runs of others that were given up.
    pub(crate) frozen: u64,
    /// Writes to keys of a wrong type, which were left out.
    pub(crate) failures: u64,
}

/// Tends what others see of a node. `settings` is what [`crate::projection::settings`] made; `token` is random.
pub(crate) async fn tend(
    link: &Link,
    url: &RedisUrl,
    settings: &str,
    node: &Node,
    token: String,
) -> Result<Tended, Fault> {
    let ns = &url.settings.namespace;
    let servers = url.servers.clone();
    // Names are looked up, and that may take its time.
    let address = tokio::task::spawn_blocking(move || own_address(&servers)).await.unwrap_or_else(|_| LOCAL.to_owned());
    let instance = serde_json::json!({ "host": node.name, "ip": address }).to_string();
    let args = [ns.clone(), settings.to_owned(), node.id.to_string(), instance, token];
    let args = args.into_iter().map(String::into_bytes).collect();
    let answer = link.call(&TEND, &[format!("{ns}:instances")], args).await?;
    let (frozen, failures) = read_answer(answer)?;
    Ok(Tended { frozen, failures })
}

/// The address from which this machine reaches the server. Nothing is sent to find it out.
fn own_address(servers: &[Server]) -> String {
    let reached = |socket: UdpSocket| {
        let server = servers.first()?;
        let address =
            (server.host.as_str(), server.port).to_socket_addrs().ok()?.find(std::net::SocketAddr::is_ipv4)?;
        socket.connect(address).ok()?;
        socket.local_addr().ok().map(|own| own.ip().to_string())
    };
    UdpSocket::bind("0.0.0.0:0").ok().and_then(reached).unwrap_or_else(|| LOCAL.to_owned())
}
