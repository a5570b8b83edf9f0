//! Enrolls writers: checks the server, and assigns a number to each writer.

use std::sync::{Arc, LazyLock, Mutex};

use cronhold_store::lock_mutex;
use cronhold_store::{Fault, WriterId};
use redis::Value;

use crate::client::NamespaceClient;
use crate::connections::Script;
use crate::cronken::PeerFlag;
use crate::replication::Replication;
use crate::reply;
use crate::rollback_recovery::{RedisRecovery, check_reply, position_args};
use crate::server_check;

static ENROLL: LazyLock<Script> = LazyLock::new(|| {
    Script::on_namespace(&[include_str!("scripts/generation.lua"), include_str!("scripts/enroll.lua")])
});

/// The version of our keys that this program reads and writes.
pub(crate) const SCHEMA: &str = "1";

/// Enrolls writers, and keeps the warnings about the server's configuration.
#[derive(Debug)]
pub(crate) struct Enrollment {
    client: Arc<NamespaceClient>,
    recovery: Arc<RedisRecovery>,
    replication: Arc<Replication>,
    peers: Arc<PeerFlag>,
    /// Whether a server that evicts keys may be used.
    accept_loss: bool,
    warnings: Mutex<Vec<String>>,
}

impl Enrollment {
    pub(crate) fn new(
        client: Arc<NamespaceClient>,
        recovery: Arc<RedisRecovery>,
        replication: Arc<Replication>,
        peers: Arc<PeerFlag>,
        accept_loss: bool,
    ) -> Self {
        Self { client, recovery, replication, peers, accept_loss, warnings: Mutex::default() }
    }

    /// Assigns a number to a new writer. Fails if the server is not suited.
    pub(crate) async fn enroll(&self) -> Result<WriterId, Fault> {
        let connections = self.client.connections();
        let check = server_check::check(connections, self.accept_loss).await?;
        if let Some(refusal) = check.refusal {
            return Err(Fault::Permanent(refusal));
        }
        self.replication.set_count(check.replicas);
        *lock_mutex(&self.warnings) = check.warnings;
        let (position, seq) = position_args(&self.recovery);
        let args = [
            self.client.namespace().to_owned(),
            position,
            seq.to_string(),
            self.client.unique_token(),
            SCHEMA.to_owned(),
            self.peers.enroll_arg().to_owned(),
        ];
        let args = args.into_iter().map(String::into_bytes).collect();
        let reply = reply::list(self.client.call(&ENROLL, args).await?)?;
        let mut reply = check_reply(&self.recovery, reply).await?.into_iter();
        let mut next = || reply.next().unwrap_or(Value::Nil);
        let writer = reply::number(&next())?;
        let (epoch, seq) = (reply::text(next())?, reply::number(&next())?);
        self.peers.record_enrollment(reply::number(&next())? != 0);
        self.recovery.start_epoch(epoch, seq.cast_unsigned());
        let writer = u32::try_from(writer).map_err(|_| reply::unexpected("a writer number", &Value::Int(writer)))?;
        self.recovery.record_writer(writer);
        connections.mark_enrolled();
        Ok(WriterId(writer))
    }

    /// What an operator should change in the configuration of the server.
    pub(crate) fn warnings(&self) -> Vec<String> {
        lock_mutex(&self.warnings).clone()
    }
}
