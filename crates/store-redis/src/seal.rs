//! The seal: a field of the key `meta`, which scripts that change anything read. This process remembers it for its health
//! report.

use std::sync::Mutex;

use cronhold_store::{Fault, lock_mutex};
use redis::{Cmd, Value};

use crate::client::NamespaceClient;
use crate::outputs::command;
use crate::reply;

/// The field of the key `meta` with the reason.
pub(crate) const FIELD: &str = "sealed";

/// The first element of a reply of the commit script that refuses a commit because of the seal.
const CODE: &[u8] = b"sealed";

/// Why the store was sealed when this process last learned about it.
#[derive(Debug, Default)]
pub(crate) struct SealFlag(Mutex<Option<String>>);

impl SealFlag {
    pub(crate) fn reason(&self) -> Option<String> {
        lock_mutex(&self.0).clone()
    }

    /// Remembers what the field contains.
    pub(crate) fn observe(&self, field: &Value) {
        let reason = match field {
            Value::BulkString(reason) => Some(String::from_utf8_lossy(reason).into_owned()),
            _ => None,
        };
        *lock_mutex(&self.0) = reason;
    }

    /// The fault if the reply of the commit script says that the store is sealed.
    pub(crate) fn refusal(&self, reply: &[Value]) -> Option<Fault> {
        match reply {
            [Value::BulkString(code), reason] if code == CODE => {
                self.observe(reason);
                Some(fault(reason))
            }
            _ => None,
        }
    }
}

/// The fault for a change of a store that is sealed for this reason.
pub(crate) fn fault(reason: &Value) -> Fault {
    match reason {
        Value::BulkString(reason) => Fault::sealed(&String::from_utf8_lossy(reason)),
        other => reply::unexpected("a reason", other),
    }
}

/// Seals the store with a reason, or unseals it.
pub(crate) async fn set(client: &NamespaceClient, reason: Option<&str>) -> Result<(), Fault> {
    let request: Cmd = match reason {
        Some(reason) => command("HSET", &[client.meta_key(), FIELD, reason]),
        None => command("HDEL", &[client.meta_key(), FIELD]),
    };
    let reply = client.connections().request_one(request).await?;
    reply::number(&reply).map(drop)
}
