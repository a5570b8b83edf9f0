//! Calls scripts on the keys of one namespace. All keys are in one hash slot, which the key `meta` selects.

use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_store::Fault;
use redis::{Cmd, Value};

use crate::connections::{CallReplies, RedisConnections, Script};
use crate::keys;
use crate::seal::SealFlag;

/// The connection to the namespace of a store, and a source of unique tokens.
#[derive(Debug)]
pub(crate) struct NamespaceClient {
    connections: RedisConnections,
    namespace: String,
    /// The key that selects the hash slot of all others.
    slot_key: [String; 1],
    next_token: AtomicU64,
    /// What this process knows about the seal of the store.
    seal: SealFlag,
}

impl NamespaceClient {
    /// `first_token` is random, so that tokens of different processes differ.
    pub(crate) fn new(connections: RedisConnections, namespace: &str, first_token: u64) -> Self {
        Self {
            connections,
            namespace: namespace.to_owned(),
            slot_key: [keys::meta(namespace)],
            next_token: AtomicU64::new(first_token),
            seal: SealFlag::default(),
        }
    }

    pub(crate) fn connections(&self) -> &RedisConnections {
        &self.connections
    }

    pub(crate) fn seal(&self) -> &SealFlag {
        &self.seal
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The namespace as the first argument of a script.
    pub(crate) fn namespace_arg(&self) -> Vec<u8> {
        self.namespace.clone().into_bytes()
    }

    pub(crate) fn meta_key(&self) -> &str {
        &self.slot_key[0]
    }

    /// A text that is unique across processes.
    pub(crate) fn unique_token(&self) -> String {
        format!("{:016x}", self.next_token.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls a script with these arguments.
    pub(crate) async fn call(&self, script: &'static Script, args: Vec<Vec<u8>>) -> Result<Value, Fault> {
        self.connections.call_script(script, &self.slot_key, args).await
    }

    /// Calls a script several times in one pipeline, and sends `trailing` commands after the calls.
    pub(crate) async fn call_batch(
        &self,
        script: &'static Script,
        calls: Vec<Vec<Vec<u8>>>,
        trailing: Vec<Cmd>,
    ) -> CallReplies {
        self.connections.call_script_batch(script, &self.slot_key, calls, trailing).await
    }
}
