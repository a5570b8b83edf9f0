//! A duration as users write it: `15m`, `1h30m`, `90s`, `2 days`, `0.5h`, `500ms`, `90`. Stored as whole microseconds,
//! so that every span has one canonical text.

use std::fmt;

use crate::text::{TextError, shortened};

/// A non-negative duration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    micros: u64,
}

/// Maximum span: a hundred years.
const SPAN_MAX: Span = Span::from_secs(100 * 366 * 86_400);

/// Units with their length in microseconds. The first name of each is canonical.
const UNITS: &[(&[&str], u64)] = &[
    (&["w", "week", "weeks"], 7 * 86_400_000_000),
    (&["d", "day", "days"], 86_400_000_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000_000),
    (&["s", "sec", "secs", "second", "seconds"], 1_000_000),
    (&["ms", "millisecond", "milliseconds"], 1_000),
    (&["us", "µs", "microsecond", "microseconds"], 1),
];

impl Span {
    pub const ZERO: Self = Self { micros: 0 };

    pub const fn from_secs(secs: u64) -> Self {
        Self { micros: secs.saturating_mul(1_000_000) }
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self { micros: millis.saturating_mul(1_000) }
    }

    pub const fn from_micros(micros: u64) -> Self {
        Self { micros }
    }

    /// The sum; saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { micros: self.micros.saturating_add(other.micros) }
    }

    /// The difference; zero if `other` is longer.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self { micros: self.micros.saturating_sub(other.micros) }
    }

    /// Length in microseconds.
    pub const fn micros(self) -> u64 {
        self.micros
    }

    /// Length in milliseconds, rounded down.
    pub const fn millis(self) -> u64 {
        self.micros / 1_000
    }

    /// Length in seconds, rounded down.
    pub const fn secs(self) -> u64 {
        self.micros / 1_000_000
    }

    pub const fn is_zero(self) -> bool {
        self.micros == 0
    }

    /// Whether it has no fraction of a second.
    pub const fn is_whole_secs(self) -> bool {
        self.micros.is_multiple_of(1_000_000)
    }

    /// Parses a span. A bare number is seconds; several units may follow each other.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut total: u64 = 0;
        let mut rest = text.trim_start();
        let mut parts = 0;
        while !rest.is_empty() {
            let at = text.len() - rest.len();
            let number_len = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
            if number_len == 0 {
                return Err(expected(text, at));
            }
            let (number, after) = rest.split_at(number_len);
            let after = after.trim_start();
            let unit_len = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
            let (unit, after) = after.split_at(unit_len);
            let unit_at = text.len() - after.len() - unit.len();
            let micros_each = match unit {
                "" if parts == 0 && after.is_empty() => 1_000_000,
                "" => return Err(expected(text, unit_at)),
                _ => unit_micros(unit).ok_or_else(|| {
                    TextError::new(
                        unit_at..unit_at + unit.len(),
                        format!("`{}` is not a unit of time", shortened(unit)),
                    )
                    .hint("units are w, d, h, m, s, ms")
                })?,
            };
            let part = scaled(number, micros_each).ok_or_else(|| {
                TextError::new(at..at + number_len, format!("`{}` is not a number of that size", shortened(number)))
            })?;
            total = total.saturating_add(part);
            parts += 1;
            rest = after.trim_start();
        }
        if parts == 0 {
            return Err(expected(text, 0));
        }
        let span = Self { micros: total };
        if span > SPAN_MAX {
            return Err(TextError::new(0..text.len(), "a span of time can be at most 100 years"));
        }
        Ok(span)
    }
}

fn expected(text: &str, at: usize) -> TextError {
    TextError::new(at..text.len().max(at), "expected a span of time such as `15m`, `1h30m` or `90s`")
}

fn unit_micros(unit: &str) -> Option<u64> {
    // One-letter units are case-sensitive, because `M` usually means month.
    let known = if unit.len() < 3 { unit.to_owned() } else { unit.to_lowercase() };
    UNITS.iter().find(|(names, _)| names.contains(&known.as_str())).map(|(_, micros)| *micros)
}

/// `number` (digits with at most one point) times `each`, exactly. `None` if it is not such a number or overflows.
fn scaled(number: &str, each: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || fraction.len() > 9 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(each)?;
    if !fraction.is_empty() {
        let denominator = 10u128.pow(u32::try_from(fraction.len()).ok()?);
        let part = fraction.parse::<u128>().ok()? * u128::from(each) / denominator;
        total = total.checked_add(u64::try_from(part).ok()?)?;
    }
    Some(total)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.micros == 0 {
            return f.write_str("0s");
        }
        let mut left = self.micros;
        // Weeks are parsed but not printed: `9d` is more common than `1w2d`.
        for (names, each) in &UNITS[1..] {
            if left >= *each {
                write!(f, "{}{}", left / each, names[0])?;
                left %= each;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

crate::stored_as_text!(Span);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, canonical) in [
            ("90", "1m30s"),
            ("90s", "1m30s"),
            ("1h30m", "1h30m"),
            ("1h 30 min", "1h30m"),
            ("2 days", "2d"),
            ("1w", "7d"),
            ("0.5h", "30m"),
            ("1.5", "1s500ms"),
            ("500ms", "500ms"),
            ("0", "0s"),
            (" 10 m ", "10m"),
        ] {
            let span = Span::parse(text).expect(text);
            assert_eq!(span.to_string(), canonical, "{text}");
            assert_eq!(Span::parse(canonical), Ok(span), "{canonical}");
        }
    }

    #[test]
    fn reports_errors_with_positions() {
        for (text, at, message) in [
            ("", 0..0, "expected a span"),
            ("ten", 0..3, "expected a span"),
            ("10x", 2..3, "`x` is not a unit"),
            ("1M", 1..2, "`M` is not a unit"),
            ("1h30", 4..4, "expected a span"),
            ("1..5s", 0..4, "not a number"),
            ("-5m", 0..3, "expected a span"),
            ("99999999999999999999s", 0..20, "not a number"),
            ("4000000000s", 0..11, "at most 100 years"),
        ] {
            let error = Span::parse(text).expect_err(text);
            assert!(error.message.contains(message), "{text}: {}", error.message);
            assert_eq!(error.at, at, "{text}");
        }
    }
}
