//! All keys of one namespace, for callers that use a namespace for a while and then delete it. It is separate from the
//! store, because no store deletes its own records in this way.

use std::time::Duration;

use cronhold_store::Fault;
use redis::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use crate::connections::RedisConnections;
use crate::outputs::{command, read_reply};
use crate::store::RedisOpenError;
use crate::url::RedisUrl;

/// Keys that the server checks for one `SCAN`. While it does, it serves no other request.
const SCANNED_PER_COMMAND: &str = "1000";
/// Keys that one `UNLINK` deletes.
const DELETED_PER_COMMAND: usize = 500;
/// Complete passes over the keys of the server before the deletion fails.
const PASSES_MAX: usize = 10;
/// Passes that may fail because the server is unreachable. The connection may have been closed since its last use.
const FAILURES_MAX: usize = 2;
/// Pause before the next pass: a request that was in flight when its connection was closed may still write a key.
const PASS_PAUSE: Duration = Duration::from_millis(100);

/// Finds and deletes the keys of a namespace: all that start with its name and a colon. Its methods block, and must not
/// be called inside an executor.
#[derive(Debug)]
pub struct NamespaceKeys {
    runtime: Runtime,
    connections: RedisConnections,
    prefix: String,
}

/// A part of the keys, and the cursor of the next part; `"0"` after the last one.
type KeyPage = (Vec<Vec<u8>>, String);

impl NamespaceKeys {
    /// The keys of the namespace of a URL. Does not connect before the first request.
    pub fn open(url: &RedisUrl) -> Result<Self, RedisOpenError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(RedisOpenError::Thread)?;
        let connections = RedisConnections::new(url, runtime.handle().clone());
        Ok(Self { connections, runtime, prefix: format!("{}:", url.namespace()) })
    }

    /// Whether the namespace has no key.
    pub fn is_empty(&self) -> Result<bool, Fault> {
        self.runtime.block_on(async {
            let mut cursor = "0".to_owned();
            loop {
                let (keys, next) = self.scan(&cursor).await?;
                if !keys.is_empty() || next == "0" {
                    return Ok(keys.is_empty());
                }
                cursor = next;
            }
        })
    }

    /// Deletes all keys of the namespace, in parts, and returns their number. It searches until a complete pass finds
    /// none.
    pub fn delete_all(&self) -> Result<u64, Fault> {
        self.runtime.block_on(async {
            let (mut deleted, mut failures) = (0, 0);
            for _ in 0..PASSES_MAX {
                match self.delete_once().await {
                    Ok(0) => return Ok(deleted),
                    Ok(count) => deleted += count,
                    Err(fault) if fault.is_transient() && failures < FAILURES_MAX => failures += 1,
                    Err(fault) => return Err(fault),
                }
                sleep(PASS_PAUSE).await;
            }
            let server = self.connections.server_name();
            Err(Fault::Unavailable(format!("{server}: another process keeps writing keys `{}*`", self.prefix)))
        })
    }

    /// One pass. Returns the number of keys that it found.
    async fn delete_once(&self) -> Result<u64, Fault> {
        let (mut cursor, mut found) = ("0".to_owned(), 0);
        loop {
            let (keys, next) = self.scan(&cursor).await?;
            found += keys.len() as u64;
            for part in keys.chunks(DELETED_PER_COMMAND) {
                let mut unlink = redis::cmd("UNLINK");
                unlink.arg(part);
                self.connections.request_one(unlink).await?;
            }
            if next == "0" {
                return Ok(found);
            }
            cursor = next;
        }
    }

    async fn scan(&self, cursor: &str) -> Result<KeyPage, Fault> {
        let pattern = format!("{}*", escape_glob(&self.prefix));
        let scan = command("SCAN", &[cursor, "MATCH", &pattern, "COUNT", SCANNED_PER_COMMAND]);
        let reply: Value = self.connections.request_one(scan).await?;
        let (next, mut keys): (String, Vec<Vec<u8>>) = read_reply(reply)?;
        // Keys that are about to be deleted do not depend on how a server reads a pattern.
        keys.retain(|key| key.starts_with(self.prefix.as_bytes()));
        Ok((keys, next))
    }
}

/// A pattern that matches exactly this text.
fn escape_glob(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for sign in text.chars() {
        if matches!(sign, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            pattern.push('\\');
        }
        pattern.push(sign);
    }
    pattern
}
