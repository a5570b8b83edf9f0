//! Encodes records as texts: fields of fixed width, which scripts read, then JSON, which they do not. One file for each
//! kind with a special layout has both directions.

mod cursor;
mod head;
mod identity;
mod job;
mod job_state;
mod node;
pub(crate) mod pack;
pub(crate) mod reply;
mod run;
mod scalars;

use std::fmt;
use std::sync::Arc;

use cronhold_core::record::{
    ActionRecord, Backlog, PauseState, Pool, Record, RecordKey, RecordKind, RecordVersion, StoredRecord, TriggerSet,
};
use cronhold_schedule::ZoneRegistry;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use head::{BODY, SEQ, TextReader};
use head::{RecordBody, VERSION};
pub(crate) use scalars::{moment_text, read_moment, version_text};

use crate::keys;

/// The version that a unit expects of a record whose stored text has no valid one; the commit script has the same.
pub(crate) const NO_VERSION: RecordVersion = RecordVersion::from_bits(u64::MAX);

/// Why a stored text cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnreadableText(pub(crate) String);

impl UnreadableText {
    fn new(message: &(impl fmt::Display + ?Sized)) -> Self {
        Self(message.to_string())
    }
}

/// The stored text of a record without version and seq, which the store adds.
pub(crate) fn body(record: &Record) -> Vec<u8> {
    let mut body = RecordBody::new(record.due());
    match record {
        Record::Pause(pauses) => body.json(&**pauses),
        Record::Job(job) => job::write(&mut body, job),
        Record::JobState(state) => job_state::write(&mut body, state),
        Record::Cursor(cursor) => cursor::write(&mut body, cursor),
        Record::Backlog(backlog) => body.json(&**backlog),
        Record::Identity(identity) => identity::write(&mut body, identity),
        Record::Run(run) => run::write(&mut body, run),
        Record::SkipSpan(span) => run::write_span(&mut body, span),
        Record::Node(node) => node::write(&mut body, node),
        Record::Action(action) => body.json(&**action),
        Record::Pool(pool) => body.json(&**pool),
        Record::Triggers(set) => body.json(&**set),
        // Locks have keys of their own. Foreign runs are read-only.
        Record::Lock(_) | Record::Foreign(_) => {}
    }
    body.into_bytes()
}

/// Decodes a stored record. Runs and spans of skips share a hash, so the result may be of the other of these two kinds.
pub(crate) fn stored(
    kind: RecordKind,
    field: &str,
    value: &[u8],
    zones: &ZoneRegistry,
) -> Result<StoredRecord, UnreadableText> {
    let key = keys::key(kind, field)
        .ok_or_else(|| UnreadableText(format!("`{}` is not a valid field", field.escape_debug())))?;
    let reading = TextReader::new(value)?;
    let record = record(key, &reading, zones)?;
    Ok(StoredRecord { version: RecordVersion::from_bits(reading.version()?), record })
}

/// The version of a stored text, and the seq of the commit that wrote it; `None` if the text is malformed.
pub(crate) fn version_and_seq(value: &[u8]) -> Option<(RecordVersion, u64)> {
    let seq = std::str::from_utf8(value.get(SEQ)?).ok()?;
    Some((stored_version(value), u64::from_str_radix(seq, 16).ok()?))
}

/// The version of a stored text whose rest cannot be decoded. A text without a valid version has [`NO_VERSION`].
pub(crate) fn stored_version(value: &[u8]) -> RecordVersion {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = value.get(..VERSION).filter(|digits| digits.iter().all(is_digit));
    let bits = digits.and_then(|digits| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
    bits.map_or(NO_VERSION, RecordVersion::from_bits)
}

fn record(key: RecordKey, reading: &TextReader<'_>, zones: &ZoneRegistry) -> Result<Record, UnreadableText> {
    Ok(match key {
        RecordKey::Pause => Record::Pause(Arc::new(reading.json::<PauseState>()?)),
        RecordKey::Job(id) => job::read(id, reading, zones)?,
        RecordKey::JobState(job) => job_state::read(job, reading)?,
        RecordKey::Cursor(job, schedule) => cursor::read(job, schedule, reading)?,
        RecordKey::Backlog(..) => Record::Backlog(Arc::new(reading.json::<Backlog>()?)),
        RecordKey::Identity(job, args) => identity::read(job, args, reading)?,
        RecordKey::Run(id) | RecordKey::SkipSpan(id) => run::read(id, reading)?,
        RecordKey::Node(_) => node::read(reading)?,
        RecordKey::Action(_) => Record::Action(Arc::new(reading.json::<ActionRecord>()?)),
        RecordKey::Pool(_) => Record::Pool(Arc::new(reading.json::<Pool>()?)),
        RecordKey::Triggers(_) => Record::Triggers(Arc::new(reading.json::<TriggerSet>()?)),
        RecordKey::Lock(_) | RecordKey::Foreign(_) => return Err(UnreadableText::new("not a record of ours")),
    })
}

fn to_json(value: &impl Serialize, into: &mut Vec<u8>) {
    serde_json::to_writer(into, value).expect("records have texts for keys, which JSON can hold");
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, UnreadableText> {
    serde_json::from_str(text).map_err(|error| UnreadableText::new(&error))
}
