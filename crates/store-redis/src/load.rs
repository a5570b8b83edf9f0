//! Records by key.

use std::sync::{Arc, LazyLock};

use cronhold_core::record::{Key, Kind, LockName, LockState, Record, Stored, Version};
use cronhold_schedule::Instant;
use cronhold_store::Fault;
use redis::Value;

use crate::codec::{self, Unreadable, reply};
use crate::inner::Inner;
use crate::link::Script;
use crate::order::holder;
use crate::{foreign, keys};

/// Keys of one script call: while it runs, nobody else is answered. More than this are seen at several moments; nobody
/// asks for so many who needs them at one.
const KEYS_A_CALL: usize = 20_000;

static LOAD: LazyLock<Script> = LazyLock::new(|| {
    Script::new(&[include_str!("scripts/prelude.lua"), foreign::PART, include_str!("scripts/load.lua")])
});

impl Inner {
    /// Records by key, in the order of the keys.
    pub(crate) async fn load(&self, wanted: Vec<Key>) -> Result<Vec<Option<Stored>>, Fault> {
        let mut found = Vec::with_capacity(wanted.len());
        for part in wanted.chunks(KEYS_A_CALL) {
            let fields: Vec<String> = part.iter().map(keys::field).collect();
            let mut args = vec![self.settings().namespace.clone().into_bytes()];
            for (key, field) in part.iter().zip(&fields) {
                args.push(vec![b'0' + keys::digit(key.kind())]);
                args.push(field.clone().into_bytes());
            }
            let answer = reply::list(self.link.call(&LOAD, &self.slot, args).await?)?;
            for ((key, field), value) in part.iter().zip(&fields).zip(answer) {
                found.push(self.loaded(key, field, value)?);
            }
        }
        Ok(found)
    }

    fn loaded(&self, key: &Key, field: &str, value: Value) -> Result<Option<Stored>, Fault> {
        match (key, value) {
            (_, Value::Nil) => Ok(None),
            (Key::Lock(name), value) => lock(name, value).map(Some),
            (Key::Foreign(job), value) => foreign::decode(job, value),
            (key, Value::BulkString(value)) => self.stored(key.kind(), field, &value).map(Some),
            (_, other) => Err(reply::strange("a record", &other)),
        }
    }

    /// A stored record; says where it is, when it cannot be read.
    pub(crate) fn stored(&self, kind: Kind, field: &str, value: &[u8]) -> Result<Stored, Fault> {
        let stored = codec::stored(kind, field, value, &self.zones);
        let stored = stored.map_err(|error| self.unreadable(kind, field, &error))?;
        self.heal.learn(&stored.record);
        Ok(stored)
    }

    pub(crate) fn unreadable(&self, kind: Kind, field: &str, error: &Unreadable) -> Fault {
        let (namespace, table) = (&self.settings().namespace, keys::table(kind));
        Fault::Broken(format!("the key {namespace}:cronhold:{table}, field `{}`: {error}", field.escape_debug()))
    }
}

/// A lock that someone holds.
fn lock(name: &LockName, value: Value) -> Result<Stored, Fault> {
    let mut parts = reply::list(value)?.into_iter();
    let (token, until) = (parts.next().unwrap_or(Value::Nil), parts.next().unwrap_or(Value::Nil));
    let (token, until) = (reply::bytes(token)?.unwrap_or_default(), reply::number(&until)?);
    let text = String::from_utf8_lossy(&token);
    let mut parts = text.split(':').skip(1);
    // Programs of another kind write tokens without a fence and a version.
    let fence = parts.next().and_then(|fence| fence.parse().ok()).unwrap_or(0);
    let version = parts.next().and_then(|version| u64::from_str_radix(version, 16).ok()).unwrap_or(0);
    let until = u64::try_from(until).ok().map(|_| Instant::from_millis(until));
    let state = LockState { name: name.clone(), holder: holder(&token), fence, until };
    Ok(Stored { version: Version::from_bits(version), record: Record::Lock(Arc::new(state)) })
}
