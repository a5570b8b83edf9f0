//! Reads records by key.

use std::sync::{Arc, LazyLock};

use cronhold_core::record::{LockName, LockState, Record, RecordKey, RecordKind, RecordVersion, StoredRecord};
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::{Fault, UnreadableRecord};
use cronhold_store_records::{UnreadableText, decode_record, stored_version};
use redis::Value;

use crate::client::NamespaceClient;
use crate::connections::Script;
use crate::packed_unit::holder;
use crate::rollback_recovery::{RedisRecovery, observe_stored};
use crate::{cronken, keys, reply};

/// Keys of one script call. While a script runs, the server serves no other request. A larger load is not one snapshot;
/// no caller that needs a snapshot loads that many.
const KEYS_PER_CALL: usize = 20_000;

static LOAD: LazyLock<Script> = LazyLock::new(|| {
    Script::on_namespace(&[
        cronken::FOREIGN_SCRIPT,
        include_str!("scripts/held_locks.lua"),
        include_str!("scripts/load.lua"),
    ])
});

/// Loads and decodes records.
#[derive(Debug)]
pub(crate) struct RecordReader {
    client: Arc<NamespaceClient>,
    zones: Arc<ZoneRegistry>,
    recovery: Arc<RedisRecovery>,
}

impl RecordReader {
    pub(crate) fn new(client: Arc<NamespaceClient>, zones: Arc<ZoneRegistry>, recovery: Arc<RedisRecovery>) -> Self {
        Self { client, zones, recovery }
    }

    /// Records in the order of the keys; `None` for those that do not exist.
    pub(crate) async fn load(&self, wanted: Vec<RecordKey>) -> Result<Vec<Option<StoredRecord>>, Fault> {
        let mut found = Vec::with_capacity(wanted.len());
        for part in wanted.chunks(KEYS_PER_CALL) {
            let fields: Vec<String> = part.iter().map(keys::field).collect();
            let mut args = vec![self.client.namespace_arg()];
            for (key, field) in part.iter().zip(&fields) {
                args.push(keys::digit(key.kind()).to_string().into_bytes());
                args.push(field.clone().into_bytes());
            }
            let reply = reply::list(self.client.call(&LOAD, args).await?)?;
            for ((key, field), value) in part.iter().zip(&fields).zip(reply) {
                found.push(self.decode(key, field, value)?);
            }
        }
        Ok(found)
    }

    fn decode(&self, key: &RecordKey, field: &str, value: Value) -> Result<Option<StoredRecord>, Fault> {
        match (key, value) {
            (_, Value::Nil) => Ok(None),
            (RecordKey::Lock(name), value) => self.decode_lock(name, value).map(Some),
            (RecordKey::Foreign(job), value) => cronken::decode_foreign_run(job, value),
            (key, Value::BulkString(value)) => {
                let stored = self.decode_stored(key.kind(), field, &value);
                let stored = stored.map_err(|record| Fault::Unreadable(Box::new(record)))?;
                // A span of skips is in the hash of runs, and is not a run.
                Ok(Some(stored).filter(|stored| stored.record.key().kind() == key.kind()))
            }
            (_, other) => Err(reply::unexpected("a record", &other)),
        }
    }

    /// Decodes a stored record.
    pub(crate) fn decode_stored(
        &self,
        kind: RecordKind,
        field: &str,
        value: &[u8],
    ) -> Result<StoredRecord, UnreadableRecord> {
        let key = keys::key(kind, field);
        let key = key.ok_or_else(|| UnreadableText::new(&format!("`{}` is not a valid field", field.escape_debug())));
        let stored = key.and_then(|key| decode_record(key, value, &self.zones));
        let stored = stored.map_err(|error| self.unreadable(kind, field, Some(stored_version(value)), &error))?;
        self.recovery.observe_record(&stored.record);
        observe_stored(&self.recovery, value);
        Ok(stored)
    }

    /// A record that cannot be decoded. The version is `None` if it does not exist although an index has it.
    pub(crate) fn unreadable(
        &self,
        kind: RecordKind,
        field: &str,
        version: Option<RecordVersion>,
        error: &UnreadableText,
    ) -> UnreadableRecord {
        let (namespace, table) = (self.client.namespace(), keys::table(kind));
        let reason = format!("key {namespace}:cronhold:{table}, field `{}`: {error}", field.escape_debug());
        UnreadableRecord { key: keys::key(kind, field), version, reason }
    }

    /// Decodes a held lock.
    pub(crate) fn decode_lock(&self, name: &LockName, value: Value) -> Result<StoredRecord, Fault> {
        let mut parts = reply::list(value)?.into_iter();
        let (token, until) = (parts.next().unwrap_or(Value::Nil), parts.next().unwrap_or(Value::Nil));
        let (token, until) = (reply::bytes(token)?.unwrap_or_default(), reply::number(&until)?);
        let text = String::from_utf8_lossy(&token);
        let mut parts = text.split(':').skip(1);
        // Tokens of other programs have no fence and no version.
        let fence = parts.next().and_then(|fence| fence.parse().ok()).unwrap_or(0);
        let version = parts.next().and_then(|version| u64::from_str_radix(version, 16).ok()).unwrap_or(0);
        let version = RecordVersion::from_bits(version);
        self.recovery.observe_fence(name, version, fence);
        let until = u64::try_from(until).ok().map(|_| Instant::from_millis(until));
        let state = LockState { name: name.clone(), holder: holder(&token), fence, until };
        Ok(StoredRecord { version, record: Record::Lock(Arc::new(state)) })
    }
}
