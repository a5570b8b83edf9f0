//! Records as the data of their znodes. An identity has its key in a line before its text, because its znode has a digest
//! for a name. Empty data means that the record does not exist: a record whose key can be used again is emptied and not
//! deleted, because the data version of a new znode starts at 0 again and could be mistaken for that of the old one.

use cronhold_core::record::{Record, RecordKey, RecordKind, RecordVersion, StoredRecord};
use cronhold_schedule::ZoneRegistry;
use cronhold_store::key_names::{key_field, parse_key};
use cronhold_store::{Fault, UnreadableRecord};
use cronhold_store_records::{decode_record, encode_record, stored_version};

use crate::paths::RecordPlace;

/// Ends the line with the key of an identity. Canonical args have no line breaks.
const KEY_END: u8 = b'\n';

/// Whether a key can be used again after its record was deleted. Runs, spans and actions have new ids.
pub(crate) const fn is_reusable(kind: RecordKind) -> bool {
    !matches!(kind, RecordKind::Run | RecordKind::SkipSpan | RecordKind::Action)
}

/// The data of a record.
pub(crate) fn encode(version: RecordVersion, record: &Record) -> Vec<u8> {
    let text = encode_record(version, 0, record);
    if !matches!(record, Record::Identity(_)) {
        return text;
    }
    let mut data = key_field(&record.key()).into_bytes();
    data.push(KEY_END);
    data.extend_from_slice(&text);
    data
}

/// The version of a record whose key is known; `None` if it does not exist.
pub(crate) fn version(key: &RecordKey, data: &[u8]) -> Option<RecordVersion> {
    let text = if key.kind() == RecordKind::Identity { identity_text(data).1 } else { data };
    (!data.is_empty()).then(|| stored_version(text))
}

/// Decodes the data of a znode; `None` if the record does not exist.
pub(crate) fn decode(
    place: &RecordPlace,
    path: &str,
    data: &[u8],
    zones: &ZoneRegistry,
) -> Result<Option<StoredRecord>, UnreadableRecord> {
    if data.is_empty() {
        return Ok(None);
    }
    let (key, text) = match place {
        RecordPlace::Key(key) => (Some(key.clone()), data),
        RecordPlace::Identity => identity_text(data),
    };
    let unreadable = |key: Option<RecordKey>, why: &str| UnreadableRecord {
        key,
        version: Some(stored_version(text)),
        reason: format!("the znode {path}: {why}"),
    };
    let Some(known) = key.clone() else {
        return Err(unreadable(None, "it does not begin with the key of an identity"));
    };
    let kind = known.kind();
    match decode_record(known, text, zones) {
        Ok(stored) if stored.record.key().kind() == kind => Ok(Some(stored)),
        Ok(_) => Err(unreadable(key, "it is a record of another kind")),
        Err(error) => Err(unreadable(key, &error.to_string())),
    }
}

/// An unreadable record as the fault of a request for it.
pub(crate) fn fault(record: UnreadableRecord) -> Fault {
    Fault::Unreadable(Box::new(record))
}

/// The key and the text of an identity.
fn identity_text(data: &[u8]) -> (Option<RecordKey>, &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == KEY_END) else { return (None, data) };
    let field = std::str::from_utf8(&data[..end]).ok();
    (field.and_then(|field| parse_key(RecordKind::Identity, field)), &data[end + 1..])
}
