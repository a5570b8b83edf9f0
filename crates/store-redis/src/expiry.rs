//! Deletes the fences of locks that have not been taken for long. Locks themselves expire in Redis.

use std::sync::LazyLock;

use cronhold_schedule::Instant;
use cronhold_store::Fault;
use redis::Value;

use crate::client::NamespaceClient;
use crate::connections::Script;
use crate::{reply, seal};

static EXPIRE: LazyLock<Script> = LazyLock::new(|| Script::on_namespace(&[include_str!("scripts/expire_locks.lua")]));

/// Deletes the fences of free locks that were last taken before a time. Each call of the script checks a part of them.
pub(crate) async fn expire_locks(client: &NamespaceClient, before: Instant) -> Result<(), Fault> {
    let mut cursor = "0".to_owned();
    loop {
        let args = vec![client.namespace_arg(), cursor.into_bytes(), before.millis().to_string().into_bytes()];
        cursor = match client.call(&EXPIRE, args).await? {
            Value::Array(sealed) => return Err(seal::fault(sealed.first().unwrap_or(&Value::Nil))),
            cursor => reply::text(cursor)?,
        };
        if cursor == "0" {
            return Ok(());
        }
    }
}
