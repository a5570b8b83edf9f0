//! How Redis is asked to recover from a rollback, by scripts. `store-remote/recovery` decides when, and what is restored.
//! Scripts detect restarts and failovers by the id of the server process.

use std::sync::{Arc, LazyLock};

use cronhold_core::RunId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LockName, RecordKey, RecordVersion};
use cronhold_schedule::Span;
use cronhold_store::Fault;
use cronhold_store::rollback::{JournaledLock, JournaledRecord, StorePosition};
use cronhold_store_records::{encode_record, version_and_seq, version_text};
use cronhold_store_remote::{
    RecoveryRequest, RecoveryServer, RecoveryStart, RequestRejection, RestoredPart, RollbackRecovery, SeqFile,
};
use redis::Value;

use crate::client::NamespaceClient;
use crate::connections::Script;
use crate::cronken::{self, PeerFlag, Projector};
use crate::enrollment::SCHEMA;
use crate::pack::Pack;
use crate::packed_unit::ttl_millis;
use crate::{keys, notifications, reply};

/// Why commits are rejected after a restart, see `prelude.lua`.
const RESTART: &[u8] = b"restart";

static BEGIN: LazyLock<Script> = LazyLock::new(|| {
    Script::on_namespace(&[include_str!("scripts/generation.lua"), include_str!("scripts/begin_recovery.lua")])
});

static RESTORE: LazyLock<Script> = LazyLock::new(|| {
    Script::on_namespace(&[
        include_str!("scripts/generation.lua"),
        include_str!("scripts/records.lua"),
        cronken::PROJECTION_SCRIPTS[0],
        cronken::PROJECTION_SCRIPTS[1],
        include_str!("scripts/restore.lua"),
    ])
});

static VERIFY: LazyLock<Script> = LazyLock::new(|| Script::on_namespace(&[include_str!("scripts/verify.lua")]));

/// Detects rollbacks of a namespace, and restores what this process has written.
pub(crate) type RedisRecovery = RollbackRecovery<RecoveryScripts>;

/// Calls the scripts of a recovery.
#[derive(Debug)]
pub(crate) struct RecoveryScripts {
    client: Arc<NamespaceClient>,
    peers: Arc<PeerFlag>,
    projector: Arc<Projector>,
    /// The field of `meta` in which the store keeps the last commit of this process.
    own_field: String,
}

/// The recovery of a process with this id.
pub(crate) fn recovery(
    client: Arc<NamespaceClient>,
    peers: Arc<PeerFlag>,
    projector: Arc<Projector>,
    process: &str,
    seq_file: Option<SeqFile>,
) -> RedisRecovery {
    let own_field = format!("by:{process}");
    RollbackRecovery::new(RecoveryScripts { client, peers, projector, own_field }, seq_file)
}

/// The position of the store as scripts compare it, see [`RecoveryScripts::position_args`].
pub(crate) fn position_args(recovery: &RedisRecovery) -> (String, u64) {
    recovery.server().position_args(recovery.position())
}

/// A record was read, in its stored form. If the reply to the unit that wrote it was lost, this confirms the unit.
pub(crate) fn observe_stored(recovery: &RedisRecovery, value: &[u8]) {
    if recovery.has_unconfirmed()
        && let Some((version, seq)) = version_and_seq(value)
    {
        recovery.observe_version(version, seq);
    }
}

/// The time to live in milliseconds that a heartbeat gives a lock of this node.
pub(crate) fn lock_millis(recovery: &RedisRecovery, lock: &LockName, holder: RunId) -> u64 {
    ttl_millis(recovery.lock_ttl(lock, holder))
}

/// The reply of a script, unless the script rejected the request because of a rollback. In that case this process
/// restores its writes first.
pub(crate) async fn check_reply(recovery: &RedisRecovery, reply: Vec<Value>) -> Result<Vec<Value>, Fault> {
    match read_rejection(&reply)? {
        None => Ok(reply),
        Some(rejection) => Err(recovery.handle_rejection(rejection).await),
    }
}

/// The rejection at the start of a reply, see `prelude.lua`.
fn read_rejection(reply: &[Value]) -> Result<Option<RequestRejection>, Fault> {
    let Some(Value::BulkString(code)) = reply.first() else { return Ok(None) };
    match code.as_slice() {
        b"healing" => {
            let rest = reply.get(1).map_or(Ok(0), reply::number)?;
            let rest = Span::from_millis(u64::try_from(rest).unwrap_or(0));
            let is_restart = matches!(reply.get(2), Some(Value::BulkString(why)) if why == RESTART);
            Ok(Some(if is_restart { RequestRejection::Restarted(rest) } else { RequestRejection::Recovering(rest) }))
        }
        b"back" => Ok(Some(RequestRejection::RolledBack)),
        _ => Err(reply::unexpected("a status of a script", &reply[0])),
    }
}

impl RecoveryScripts {
    /// A position as scripts compare it: epoch, field and last commit of this process as one text, which is empty before
    /// the first contact; and the seq.
    fn position_args(&self, position: StorePosition) -> (String, u64) {
        let StorePosition { epoch, seq, own_seq } = position;
        let text = if epoch.is_empty() { String::new() } else { format!("{epoch} {} {own_seq}", self.own_field) };
        (text, seq)
    }

    fn restore_args(&self, start: &RecoveryStart, part: RestoredPart<'_>) -> Vec<Vec<u8>> {
        let mut hints = Vec::new();
        let mut packed = Pack::default();
        packed.list(5 * part.records.len());
        for entry in part.records {
            let key = entry.change.key();
            let field = keys::field(&key);
            notifications::write_field_hint(&key, &field, false, &mut hints);
            packed.number(u64::from(keys::digit(key.kind())));
            packed.text(&field);
            packed.text(format!("{:016x}", entry.seq));
            packed.text(stored_text(entry));
            packed.text(match &entry.change {
                RecordChange::Put(record) => self.projector.project(record).to_text(),
                RecordChange::Delete(_) => Vec::new(),
            });
        }
        let mut packed_locks = Pack::default();
        packed_locks.list(4 * part.locks.len());
        for entry in part.locks {
            packed_locks.text(entry.take.lock.as_str());
            packed_locks.text(entry.take.holder.to_string());
            packed_locks.text(restored_token(entry));
            packed_locks.number(entry.take.ttl.map_or(0, ttl_millis));
        }
        let own = part.own_seq.map(|own_seq| format!("{} {own_seq}", self.own_field)).unwrap_or_default();
        vec![
            self.client.namespace_arg(),
            self.peers.projection_settings().as_bytes().to_vec(),
            start.epoch.clone().into_bytes(),
            own.into_bytes(),
            hints,
            packed.into_bytes(),
            packed_locks.into_bytes(),
        ]
    }
}

/// While a script runs, the server serves no other request, so the numbers of records are limited.
impl RecoveryServer for RecoveryScripts {
    const RESTORED_PER_CALL: usize = 200;
    const VERIFIED_PER_CALL: usize = 500;
    const SYSTEM: &'static str = "Redis";

    fn server_name(&self) -> String {
        self.client.connections().server_name()
    }

    async fn begin(&self, request: RecoveryRequest) -> Result<Option<RecoveryStart>, Fault> {
        let RecoveryRequest { position, hold, writer } = request;
        let (position, seq) = self.position_args(position);
        let args = [
            self.client.namespace().to_owned(),
            position,
            seq.to_string(),
            self.client.unique_token(),
            hold.micros().div_ceil(1_000).to_string(),
            SCHEMA.to_owned(),
            writer.to_string(),
            self.peers.known_word().to_owned(),
        ];
        let args = args.into_iter().map(String::into_bytes).collect();
        let mut reply = reply::list(self.client.call(&BEGIN, args).await?)?.into_iter();
        let mut next = || reply.next().unwrap_or(Value::Nil);
        let epoch = reply::text(next())?;
        if epoch.is_empty() {
            return Ok(None);
        }
        let (seq, own_seq) = (reply::number(&next())?.cast_unsigned(), reply::number(&next())?.cast_unsigned());
        Ok(Some(RecoveryStart { epoch, seq, own_seq }))
    }

    async fn restore(&self, start: &RecoveryStart, part: RestoredPart<'_>) -> Result<bool, Fault> {
        let reply = self.client.call(&RESTORE, self.restore_args(start, part)).await?;
        // The script returns the epoch if it is not the one of this recovery.
        Ok(!matches!(reply, Value::BulkString(_)))
    }

    async fn find_changed(
        &self,
        position: StorePosition,
        records: &[(RecordKey, RecordVersion)],
    ) -> Result<Result<Vec<usize>, RequestRejection>, Fault> {
        let mut packed = Pack::default();
        packed.list(3 * records.len());
        for (key, version) in records {
            packed.number(u64::from(keys::digit(key.kind())));
            packed.text(keys::field(key));
            packed.text(version_text(*version));
        }
        let (position, seq) = self.position_args(position);
        let args =
            vec![self.client.namespace_arg(), position.into_bytes(), seq.to_string().into_bytes(), packed.into_bytes()];
        let reply = reply::list(self.client.call(&VERIFY, args).await?)?;
        if let Some(rejection) = read_rejection(&reply)? {
            return Ok(Err(rejection));
        }
        let indexes = reply.iter().skip(1).map(|index| Ok(usize::try_from(reply::number(index)?).ok()));
        Ok(Ok(indexes.collect::<Result<Vec<_>, Fault>>()?.into_iter().flatten().collect()))
    }

    fn on_rollback(&self, start: &RecoveryStart, records: usize) {
        let RecoveryStart { seq, own_seq, .. } = start;
        tracing::warn!(
            event = "redis_rolled_back",
            seq,
            own_seq,
            records,
            "Redis has lost commits; restoring {records} records"
        );
    }

    fn on_restored(&self, records: usize) {
        tracing::info!(event = "redis_records_restored", records, "restored {records} records");
    }
}

/// A record as it is stored; empty if it was deleted.
fn stored_text(entry: &JournaledRecord) -> Vec<u8> {
    let RecordChange::Put(record) = &entry.change else { return Vec::new() };
    encode_record(entry.version, entry.seq, record)
}

/// The token of a restored lock. It ends with a fixed word where others have a random text.
fn restored_token(entry: &JournaledLock) -> String {
    let JournaledLock { version, take, fence, .. } = entry;
    let (fence, ttl) = (fence.unwrap_or(0), take.ttl.map_or(0, ttl_millis));
    format!("{}:{fence}:{}:{ttl}:brought-back", take.holder, version_text(*version))
}
