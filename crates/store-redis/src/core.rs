//! What all handles on a store share. Each part has private fields and a file of its own; this file only connects them.

use std::sync::Arc;

use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::{Fault, StoreHealthReport};
use cronhold_store_remote::{SeqFile, WriteCounters};
use redis::Value;

use crate::client::NamespaceClient;
use crate::commit::Committer;
use crate::connections::RedisConnections;
use crate::cronken::{PeerFlag, Projector};
use crate::enrollment::Enrollment;
use crate::heartbeat::HeartbeatWriter;
use crate::keys;
use crate::listing::PageReader;
use crate::load::RecordReader;
use crate::notifications::Notifications;
use crate::outputs::{OutputStore, command};
use crate::replication::Replication;
use crate::reply;
use crate::rollback_recovery::{RedisRecovery, recovery};
use crate::seal;
use crate::url::{RedisUrl, Topology};

/// The parts of a store. Handles share them through an `Arc`.
#[derive(Debug)]
pub(crate) struct StoreCore {
    pub(crate) url: RedisUrl,
    pub(crate) client: Arc<NamespaceClient>,
    pub(crate) peers: Arc<PeerFlag>,
    pub(crate) projector: Arc<Projector>,
    pub(crate) notifications: Notifications,
    /// A channel without messages, which shows that this process is subscribed.
    pub(crate) own_channel: String,
    pub(crate) recovery: Arc<RedisRecovery>,
    pub(crate) counters: Arc<WriteCounters>,
    pub(crate) enrollment: Enrollment,
    pub(crate) commits: Committer,
    pub(crate) heartbeats: HeartbeatWriter,
    pub(crate) records: Arc<RecordReader>,
    pub(crate) pages: PageReader,
    pub(crate) outputs: OutputStore,
    replication: Arc<Replication>,
}

impl StoreCore {
    pub(crate) fn new(
        url: RedisUrl,
        zones: Arc<ZoneRegistry>,
        accept_loss: bool,
        connections: RedisConnections,
        seq_file: Option<SeqFile>,
    ) -> Result<Self, getrandom::Error> {
        let mut seeds = [0; 16];
        getrandom::fill(&mut seeds)?;
        let [first_handle, first_token] =
            [&seeds[..8], &seeds[8..]].map(|seed| seed.iter().fold(0, |bits: u64, byte| bits << 8 | u64::from(*byte)));
        let settings = &url.settings;
        let peers = Arc::new(PeerFlag::new(settings));
        let counters = Arc::new(WriteCounters::default());
        let replication = Arc::new(Replication::new(settings.timeout));
        let projector = Arc::new(Projector::new(settings.lines));
        let outputs = OutputStore::new(connections.separate(), &settings.namespace, Arc::clone(&peers));
        let client = Arc::new(NamespaceClient::new(connections, &settings.namespace, first_token));
        let process = format!("{first_handle:016x}");
        let own_channel = keys::own_hints(&settings.namespace, &process);
        let recovery = recovery(Arc::clone(&client), Arc::clone(&peers), Arc::clone(&projector), &process, seq_file);
        let recovery = Arc::new(recovery);
        let records = Arc::new(RecordReader::new(Arc::clone(&client), zones, Arc::clone(&recovery)));
        Ok(Self {
            notifications: Notifications::new(first_handle),
            enrollment: Enrollment::new(
                Arc::clone(&client),
                Arc::clone(&recovery),
                Arc::clone(&replication),
                Arc::clone(&peers),
                accept_loss,
            ),
            commits: Committer::new(
                Arc::clone(&client),
                Arc::clone(&recovery),
                Arc::clone(&replication),
                Arc::clone(&counters),
                Arc::clone(&peers),
                Arc::clone(&projector),
                // Other subscribers may be connected to other servers of a Cluster, or to a former master.
                Some(own_channel.clone()).filter(|_| url.topology == Topology::Single),
            ),
            own_channel,
            heartbeats: HeartbeatWriter::new(
                Arc::clone(&client),
                Arc::clone(&recovery),
                Arc::clone(&replication),
                Arc::clone(&peers),
                Arc::clone(&projector),
                &url,
            ),
            pages: PageReader::new(Arc::clone(&client), Arc::clone(&records)),
            records,
            outputs,
            replication,
            recovery,
            counters,
            peers,
            projector,
            client,
            url,
        })
    }

    /// The clock of the server. Every process requests it first and often, so that one that only reads learns about peers
    /// and about the seal as well.
    pub(crate) async fn time(&self) -> Result<Instant, Fault> {
        let connections = self.client.connections();
        let meta = command("HMGET", &[self.client.meta_key(), "peers", seal::FIELD]);
        let mut replies = connections.request(vec![command("TIME", &[]), meta]).await?.into_iter();
        let mut next = || replies.next().unwrap_or(Value::Nil);
        let reply = reply::list(connections.check_reply(next())?)?;
        // An error in the second reply is reported by the request that needs the key.
        if let Value::Array(fields) = next()
            && let [peers, sealed] = fields.as_slice()
        {
            self.client.seal().observe(sealed);
            if let Value::BulkString(word) = peers {
                self.peers.observe_before_enrollment(&String::from_utf8_lossy(word));
            }
        }
        let parts = reply.into_iter().map(|part| {
            let part = reply::text(part)?;
            part.parse::<i64>().map_err(|_| Fault::Permanent(format!("invalid reply to TIME: `{part}`")))
        });
        match parts.collect::<Result<Vec<_>, Fault>>()?[..] {
            [seconds, micros] => Ok(Instant::from_micros(seconds.saturating_mul(1_000_000).saturating_add(micros))),
            _ => Err(Fault::Permanent("invalid reply to TIME".to_owned())),
        }
    }

    /// The state of the store, for display and metrics.
    pub(crate) fn health(&self) -> StoreHealthReport {
        let warnings = self
            .enrollment
            .warnings()
            .into_iter()
            .chain(self.replication.warning())
            .chain(self.projector.warning())
            .chain(self.recovery.warning())
            .chain(self.peers.warning());
        let unreachable = self.client.connections().failure();
        let health = self.counters.health(unreachable, format!("Redis at {}", self.url), warnings.collect());
        StoreHealthReport { sealed: self.client.seal().reason(), ..health }
    }
}
