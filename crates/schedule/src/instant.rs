//! A point in time, in microseconds since 1970-01-01T00:00:00Z.

use std::fmt;

use crate::span::Span;
use crate::text::{TextError, not_a};
use jiff::Timestamp;
use jiff::tz::Offset;

/// A point in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant {
    micros: i64,
}

impl Instant {
    /// 1970-01-01T00:00:00Z
    pub const EPOCH: Self = Self { micros: 0 };

    /// The instant that many seconds after the epoch.
    pub const fn from_secs(secs: i64) -> Self {
        Self { micros: secs.saturating_mul(1_000_000) }
    }

    /// The instant that many milliseconds after the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self { micros: millis.saturating_mul(1_000) }
    }

    /// The instant that many microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self { micros }
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.micros
    }

    /// Milliseconds since the epoch, rounded down.
    pub const fn millis(self) -> i64 {
        self.micros.div_euclid(1_000)
    }

    /// Seconds since the epoch, rounded down.
    pub const fn secs(self) -> i64 {
        self.micros.div_euclid(1_000_000)
    }

    /// Seconds since the epoch, rounded up.
    pub const fn secs_up(self) -> i64 {
        self.secs() + if self.micros.rem_euclid(1_000_000) == 0 { 0 } else { 1 }
    }

    /// The instant `span` later; saturates.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self { micros: self.micros.saturating_add_unsigned(span.micros()) }
    }

    /// The instant `span` earlier; saturates.
    #[must_use]
    pub const fn minus(self, span: Span) -> Self {
        Self { micros: self.micros.saturating_sub_unsigned(span.micros()) }
    }

    /// Time elapsed since `earlier`; zero if `earlier` is later than this.
    pub const fn since(self, earlier: Self) -> Span {
        if self.micros <= earlier.micros {
            return Span::ZERO;
        }
        Span::from_micros(self.micros.abs_diff(earlier.micros))
    }

    /// Parses RFC 3339 with `Z` or an offset, such as `2026-03-29T01:30:00+01:00`.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let trimmed = text.trim();
        let parsed: Timestamp = trimmed
            .parse()
            .map_err(|_| not_a(text, "an instant").hint("write date, time and offset, such as 2026-03-29T01:30:00Z"))?;
        Ok(Self { micros: parsed.as_microsecond() })
    }

    /// RFC 3339 with the given offset from UTC in seconds. RFC 3339 offsets have no seconds, so historical offsets with
    /// seconds are rounded to minutes together with the time, and the instant stays the same.
    pub fn with_offset(self, offset_secs: i32) -> String {
        let minutes = (offset_secs + 30).div_euclid(60);
        let offset = Offset::from_seconds(minutes * 60).unwrap_or(Offset::UTC);
        self.timestamp().display_with_offset(offset).to_string()
    }

    fn timestamp(self) -> Timestamp {
        let end = if self.micros < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::from_microsecond(self.micros).unwrap_or(end)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.timestamp(), f)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

crate::stored_as_text!(Instant);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        let at = Instant::parse("2026-03-29T01:30:00+01:00").expect("valid");
        assert_eq!(at.to_string(), "2026-03-29T00:30:00Z");
        assert_eq!(at.with_offset(3600), "2026-03-29T01:30:00+01:00");
        assert_eq!(at.with_offset(-2670), "2026-03-28T23:46:00-00:44");
        assert_eq!(at.with_offset(0), "2026-03-29T00:30:00+00:00");
        assert_eq!(at.plus(Span::from_millis(5)).to_string(), "2026-03-29T00:30:00.005Z");
        assert!(Instant::parse("2026-03-29T01:30:00").is_err());
        assert!(Instant::parse("tomorrow").is_err());
    }

    #[test]
    fn extreme_instants_print_without_panic() {
        assert_eq!(Instant::from_secs(i64::MAX).to_string(), "9999-12-30T22:00:00.999999999Z");
        assert!(Instant::from_secs(i64::MIN).to_string().starts_with('-'));
    }
}
