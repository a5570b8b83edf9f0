//! A Cluster of three masters, optionally each with a replica.

use std::process::{Command, Stdio};

use cronhold_store_remote::testing::{free_port, until};

use super::options::ServerOptions;
use super::server::RedisServer;

/// Number of masters; Redis requires three.
const MASTERS: usize = 3;

#[derive(Debug)]
pub struct ClusterSet {
    /// All servers, masters and replicas.
    pub servers: Vec<RedisServer>,
}

impl ClusterSet {
    /// Starts a Cluster, and waits until it serves all slots.
    pub fn start(with_replicas: bool) -> Self {
        let count = if with_replicas { 2 * MASTERS } else { MASTERS };
        let servers: Vec<RedisServer> = (0..count).map(|_| start_member()).collect();
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]);
        create.args(servers.iter().map(|server| format!("127.0.0.1:{}", server.port())));
        create.args(["--cluster-yes", "--cluster-replicas", if with_replicas { "1" } else { "0" }]);
        let output = create.stdin(Stdio::null()).output().expect("redis-cli is installed with redis-server");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "the Cluster was not made:\n{said}");
        let set = Self { servers };
        for server in &set.servers {
            until("the Cluster is up", || server.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok").then_some(()));
        }
        set
    }

    /// The URL of the Cluster with further parameters.
    pub fn url_with(&self, params: &str) -> String {
        let places: Vec<String> = self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        let query = if params.is_empty() { String::new() } else { format!("?{params}") };
        format!("redis+cluster://{}{query}", places.join(","))
    }

    /// Index of the server that currently serves the slot of a key.
    pub fn master_of(&self, key: &str) -> usize {
        until("a living master has the slot", || {
            let slot = self.alive()?.cli(&["CLUSTER", "KEYSLOT", key]);
            // Each master reports its own slots.
            self.servers.iter().position(|server| {
                let nodes = server.cli(&["CLUSTER", "NODES"]);
                let own = nodes.lines().find(|line| line.contains("myself"));
                own.is_some_and(|own| own.contains("master") && has_slot(own, &slot))
            })
        })
    }

    /// Moves the slot of a key to another server, key by key. Calls `between` before the first key and after each.
    pub fn move_slot(&self, key: &str, to: usize, mut between: impl FnMut()) {
        let (old, new) = (&self.servers[self.master_of(key)], &self.servers[to]);
        let slot = old.cli(&["CLUSTER", "KEYSLOT", key]);
        let [old_id, new_id] = [old, new].map(|server| server.cli(&["CLUSTER", "MYID"]));
        let done = |server: &RedisServer, words: &[&str]| assert_eq!(server.cli(words), "OK", "{words:?}");
        done(new, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &old_id]);
        done(old, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &new_id]);
        between();
        let port = new.port().to_string();
        loop {
            let next = old.cli(&["CLUSTER", "GETKEYSINSLOT", &slot, "1"]);
            if next.is_empty() {
                break;
            }
            done(old, &["MIGRATE", "127.0.0.1", &port, &next, "0", "5000"]);
            between();
        }
        for server in [new, old] {
            done(server, &["CLUSTER", "SETSLOT", &slot, "NODE", &new_id]);
        }
    }

    fn alive(&self) -> Option<&RedisServer> {
        self.servers.iter().find(|server| server.cli(&["PING"]) == "PONG")
    }
}

fn start_member() -> RedisServer {
    let settings = vec![
        ("cluster-enabled", "yes".to_owned()),
        ("cluster-port", free_port().to_string()),
        ("cluster-node-timeout", "1500".to_owned()),
        ("cluster-config-file", "nodes.conf".to_owned()),
    ];
    RedisServer::start_with(ServerOptions { settings, ..Default::default() })
}

/// Whether a line of `CLUSTER NODES` names a slot among its ranges, such as `0-5460`.
fn has_slot(line: &str, slot: &str) -> bool {
    let Ok(slot) = slot.parse::<u32>() else { return false };
    line.split_whitespace().skip(8).any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        matches!((first.parse::<u32>(), last.parse::<u32>()), (Ok(first), Ok(last)) if (first..=last).contains(&slot))
    })
}
