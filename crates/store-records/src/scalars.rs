//! Numbers and times as hex digits of fixed width, which sort like their values.

use cronhold_core::record::RecordVersion;
use cronhold_schedule::Instant;

use crate::UnreadableText;

/// Written instead of a time.
pub(super) const NO_TIME: &str = "----------------";

/// Inverts the sign bit of a time, so that its digits sort by time.
const SIGN: u64 = 1 << 63;

/// A time as 16 hex digits.
pub fn moment_text(at: Instant) -> String {
    format!("{:016x}", at.micros().cast_unsigned() ^ SIGN)
}

/// Parses a time.
pub fn read_moment(text: &str) -> Result<Instant, UnreadableText> {
    Ok(Instant::from_micros((hex(text)? ^ SIGN).cast_signed()))
}

/// A version as 16 hex digits.
pub fn version_text(version: RecordVersion) -> String {
    format!("{:016x}", version.bits())
}

/// Parses hex digits.
pub(super) fn hex(text: &str) -> Result<u64, UnreadableText> {
    u64::from_str_radix(text, 16).map_err(|_| UnreadableText(format!("`{}` is not a number", text.escape_debug())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_back_and_in_order() {
        let times = [i64::MIN, -1, 0, 1, 1_800_000_000_000_000, i64::MAX].map(Instant::from_micros);
        let texts = times.map(moment_text);
        assert!(texts.is_sorted() && texts.iter().all(|text| text.len() == NO_TIME.len()), "{texts:?}");
        assert_eq!(texts.each_ref().map(|text| read_moment(text).expect("a time")), times);
        assert!(read_moment(NO_TIME).is_err());
    }
}
