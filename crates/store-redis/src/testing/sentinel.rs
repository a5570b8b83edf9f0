//! A master, a replica and three Sentinels that watch them.

use cronhold_store_remote::testing::until;

use super::options::ServerOptions;
use super::server::RedisServer;

/// The name under which the Sentinels know the master.
const SERVICE: &str = "mymaster";

/// Number of Sentinels. Two of them must agree.
const SENTINELS: usize = 3;

/// A master, a replica and Sentinels. A master that is unreachable for a second is replaced.
#[derive(Debug)]
pub struct SentinelSet {
    /// The two servers. The first is the initial master.
    pub servers: [RedisServer; 2],
    pub sentinels: Vec<RedisServer>,
}

impl SentinelSet {
    /// Starts all processes, and waits until they know each other.
    pub fn start() -> Self {
        let master = RedisServer::start();
        let replica = RedisServer::start_with(ServerOptions { replica_of: Some(master.port()), ..Default::default() });
        until("the replica follows", || replica.cli(&["ROLE"]).contains("connected").then_some(()));
        let sentinels = (0..SENTINELS).map(|_| RedisServer::start_sentinel(master.port())).collect();
        let set = Self { servers: [master, replica], sentinels };
        for sentinel in &set.sentinels {
            until("a Sentinel knows all the others", || {
                let known = sentinel.cli(&["SENTINEL", "MASTER", SERVICE]);
                let others = (SENTINELS - 1).to_string();
                let has_all = value(&known, "num-slaves") == Some("1")
                    && value(&known, "num-other-sentinels") == Some(others.as_str());
                has_all.then_some(())
            });
        }
        set
    }

    /// The URL of the set with further parameters.
    pub fn url_with(&self, params: &str) -> String {
        let places: Vec<String> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
        let query = if params.is_empty() { String::new() } else { format!("?{params}") };
        format!("redis+sentinel://{}/{SERVICE}{query}", places.join(","))
    }

    /// Index of the server that the Sentinels name as master.
    pub fn master(&self) -> usize {
        until("a Sentinel names a master", || {
            let answer = self.sentinels[0].cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]);
            let port: u16 = answer.lines().nth(1)?.parse().ok()?;
            self.servers.iter().position(|server| server.port() == port)
        })
    }

    /// Waits until a server other than `before` is the master, and returns its index.
    pub fn wait_for_other_than(&self, before: usize) -> usize {
        until("another server is the master", || {
            let now = self.master();
            (now != before && self.servers[now].cli(&["ROLE"]).starts_with("master")).then_some(now)
        })
    }
}

impl RedisServer {
    fn start_sentinel(master: u16) -> Self {
        let settings = vec![
            ("sentinel", format!("monitor {SERVICE} 127.0.0.1 {master} 2")),
            ("sentinel", format!("down-after-milliseconds {SERVICE} 1000")),
            ("sentinel", format!("failover-timeout {SERVICE} 5000")),
        ];
        Self::start_program("redis-sentinel", ServerOptions { settings, ..Default::default() })
    }
}

/// A value in a reply that `redis-cli` prints as alternating names and values.
fn value<'a>(printed: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = printed.lines();
    lines.find(|line| *line == name)?;
    lines.next()
}
