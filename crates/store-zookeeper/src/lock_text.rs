//! Locks as texts: the fence, and if the lock is held, its holder, the version of the unit that took it, and its time to
//! live in microseconds. The text has no end: a lock that is held ends its time to live after its znode was last set.

use cronhold_core::RunId;
use cronhold_core::record::{LockName, RecordKey, RecordVersion};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{LockEntry, LockHold, UnreadableRecord};

/// Written instead of a time to live.
const FOREVER: &str = "-";

/// The text of a lock.
pub(crate) fn encode(entry: &LockEntry) -> Vec<u8> {
    let text = match &entry.hold {
        None => entry.fence.to_string(),
        Some(LockHold { holder, version, ttl, .. }) => {
            let ttl = ttl.map_or_else(|| FOREVER.to_owned(), |ttl| ttl.micros().to_string());
            format!("{} {holder} {:016x} {ttl}", entry.fence, version.bits())
        }
    };
    text.into_bytes()
}

/// Reads the text of a lock; `None` if it is empty, because the lock was expired. `end` computes the end of a lock from its
/// time to live.
pub(crate) fn decode(
    name: &LockName,
    path: &str,
    data: &[u8],
    end: impl Fn(Span) -> Instant,
) -> Result<Option<LockEntry>, UnreadableRecord> {
    if data.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(data).ok();
    let entry = text.and_then(|text| {
        let mut words = text.split(' ');
        let fence = words.next()?.parse().ok()?;
        let Some(holder) = words.next() else { return Some(LockEntry { fence, hold: None }) };
        let holder = RunId::parse(holder).ok()?;
        let version = RecordVersion::from_bits(u64::from_str_radix(words.next()?, 16).ok()?);
        let ttl = match words.next()? {
            FOREVER => None,
            micros => Some(Span::from_micros(micros.parse().ok()?)),
        };
        let hold = LockHold { holder, version, ttl, until: ttl.map(end) };
        words.next().is_none().then_some(LockEntry { fence, hold: Some(hold) })
    });
    entry.map(Some).ok_or_else(|| UnreadableRecord {
        key: Some(RecordKey::Lock(name.clone())),
        version: None,
        reason: format!("the znode {path} is not a lock of Cronhold; delete it"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_returned_as_written() {
        let name = LockName::parse("l").expect("a name");
        let (at, second) = (Instant::from_secs(1_800_000_000), Span::from_secs(1));
        let hold = |ttl: Option<Span>| LockHold {
            holder: RunId::from_key(at, "r"),
            version: RecordVersion::new(7, 9),
            ttl,
            until: ttl.map(|ttl| at.plus(ttl)),
        };
        for hold in [None, Some(hold(None)), Some(hold(Some(second)))] {
            let entry = LockEntry { fence: 12, hold };
            assert_eq!(decode(&name, "/l", &encode(&entry), |ttl| at.plus(ttl)), Ok(Some(entry)));
        }
        assert_eq!(decode(&name, "/l", b"", |ttl| at.plus(ttl)), Ok(None));
        for invalid in [&b"x"[..], b"1 x", b"1 \xff", b"1 - - - -"] {
            assert!(decode(&name, "/l", invalid, |ttl| at.plus(ttl)).is_err(), "{invalid:?}");
        }
    }
}
