//! Encodes records as texts. The first line has fields of fixed width: the version of the record, the seq of the commit
//! that wrote it, its due time, and what a store compares or sorts by without decoding the rest. The second line is JSON.
//! One file for each kind with a special layout has both directions.
//!
//! Records are decoded by their keys, which the texts do not contain. A store that does not count its commits writes 0
//! as the seq.

mod cursor;
mod head;
mod identity;
mod job;
mod job_state;
mod node;
mod run;
mod scalars;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::{
    ActionRecord, Backlog, PauseState, Pool, Record, RecordKey, RecordVersion, Run, StoredRecord, TriggerSet,
};
use cronhold_schedule::ZoneRegistry;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use head::{BODY, SEQ};
use head::{RecordBody, TextReader, VERSION};
pub use scalars::{moment_text, read_moment, version_text};

/// The version that a unit expects of a record whose stored text has no valid one.
pub const NO_VERSION: RecordVersion = RecordVersion::from_bits(u64::MAX);

/// Why a stored text cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnreadableText(String);

impl UnreadableText {
    /// An error with this message.
    pub fn new(message: &(impl fmt::Display + ?Sized)) -> Self {
        Self(message.to_string())
    }
}

/// The text of a record that the commit `seq` writes with this version.
pub fn encode_record(version: RecordVersion, seq: u64, record: &Record) -> Vec<u8> {
    let mut text = format!("{} {seq:016x} ", version_text(version)).into_bytes();
    text.extend_from_slice(&encode_body(record));
    text
}

/// The text of a record from [`BODY`] on, without version and seq. It is not for locks, which stores keep in forms of
/// their own, and not for foreign runs, which they never write.
pub fn encode_body(record: &Record) -> Vec<u8> {
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
        Record::Lock(_) | Record::Foreign(_) => {}
    }
    body.into_bytes()
}

/// Decodes the text that is stored for a key. Runs and spans of skips have the same form, so the result may be of the
/// other of these two kinds.
pub fn decode_record(key: RecordKey, text: &[u8], zones: &ZoneRegistry) -> Result<StoredRecord, UnreadableText> {
    let reading = TextReader::new(text)?;
    let record = read_record(key, &reading, zones)?;
    Ok(StoredRecord { version: RecordVersion::from_bits(reading.version()?), record })
}

/// What the first line of the text of a run or a span of skips tells, if the rest cannot be decoded: the job, the number,
/// the state and the node of the owner. Lists need no more to name the run.
pub fn decode_listed_run(id: RunId, text: &[u8]) -> Option<Run> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    run::read_listed(id, &TextReader::new(&text[..=end]).ok()?).ok()
}

/// The version of a stored text, and the seq of the commit that wrote it; `None` if the text is malformed.
pub fn version_and_seq(text: &[u8]) -> Option<(RecordVersion, u64)> {
    let seq = std::str::from_utf8(text.get(SEQ)?).ok()?;
    Some((stored_version(text), u64::from_str_radix(seq, 16).ok()?))
}

/// The version of a stored text whose rest cannot be decoded. A text without a valid version has [`NO_VERSION`].
pub fn stored_version(text: &[u8]) -> RecordVersion {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = text.get(..VERSION).filter(|digits| digits.iter().all(is_digit));
    let bits = digits.and_then(|digits| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
    bits.map_or(NO_VERSION, RecordVersion::from_bits)
}

fn read_record(key: RecordKey, reading: &TextReader<'_>, zones: &ZoneRegistry) -> Result<Record, UnreadableText> {
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
