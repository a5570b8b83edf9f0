//! Walks through all records of a kind, by the hash of that kind: lists have no index of actions that are done, and of
//! locks. Names of marks are not stored, so they are left out.

use std::sync::LazyLock;

use cronhold_core::record::{LockName, RecordKind};
use cronhold_store::{Fault, WalkPage, WalkPlace};
use redis::Value;

use crate::connections::Script;
use crate::listing::{PageReader, count};
use crate::{keys, reply};

static WALK: LazyLock<Script> =
    LazyLock::new(|| Script::on_namespace(&[include_str!("scripts/held_locks.lua"), include_str!("scripts/walk.lua")]));

impl PageReader {
    /// Some records of a kind, and where the walk continues.
    pub(crate) async fn walk(
        &self,
        kind: RecordKind,
        from: Option<WalkPlace>,
        limit: usize,
    ) -> Result<WalkPage, Fault> {
        if kind == RecordKind::Foreign {
            return Ok(WalkPage::default());
        }
        let place = from.map(|place| place.0).unwrap_or_default();
        let mut found = self.request_walk(kind, place, limit).await?.into_iter();
        let next = reply::bytes(found.next().unwrap_or(Value::Nil))?.ok_or_else(|| {
            Fault::Permanent("a walk must begin again, because another Redis server has taken over".to_owned())
        })?;
        let mut page = WalkPage { next: (!next.is_empty()).then_some(WalkPlace(next)), ..WalkPage::default() };
        while let (Some(field), Some(value)) = (found.next(), found.next()) {
            let field = reply::text(field)?;
            let decoded = match kind {
                // The hash of fences may have names that are not ours.
                RecordKind::Lock => match LockName::parse(&field) {
                    Ok(name) => Ok(self.records().decode_lock(&name, value)?),
                    Err(_) => continue,
                },
                _ => self.decode_listed(kind, &field, reply::bytes(value)?),
            };
            match decoded {
                // Spans of skips are in the hash of runs.
                Ok(stored) if stored.record.key().kind() != kind => {}
                Ok(stored) => page.records.push(stored),
                Err(record) => page.unreadable.push(record),
            }
        }
        Ok(page)
    }

    async fn request_walk(&self, kind: RecordKind, place: Vec<u8>, limit: usize) -> Result<Vec<Value>, Fault> {
        let kind = keys::digit(kind).to_string().into_bytes();
        let args = vec![self.client().namespace_arg(), kind, place, count(limit.max(1))];
        reply::list(self.client().call(&WALK, args).await?)
    }
}
