//! Displays and parses times in a zone, and relative to now.

use cronhold_schedule::{Instant, Span, Zone};

use crate::CliError;
use crate::time_input::{self, Direction};

/// A time zone and the current time.
#[derive(Debug, Clone)]
pub(crate) struct LocalTimeFormat {
    pub(crate) zone: Zone,
    pub(crate) now: Instant,
}

impl LocalTimeFormat {
    /// A time to the second, such as `2026-03-29 01:30:00Z`.
    pub(crate) fn at(&self, at: Instant) -> String {
        let whole = Instant::from_secs(at.secs());
        let text = whole.with_offset(self.zone.offset_at(at.secs())).replace('T', " ");
        text.strip_suffix("+00:00").map(|text| format!("{text}Z")).unwrap_or(text)
    }

    /// The distance from now: `in 5m00s`, `2h10m ago`.
    pub(crate) fn relative(&self, at: Instant) -> String {
        let (ahead, ago) = (at.since(self.now), self.now.since(at));
        match (ahead.secs(), ago.secs()) {
            (0, 0) => "now".to_owned(),
            (0, _) => format!("{} ago", rounded(ago)),
            _ => format!("in {}", rounded(ahead)),
        }
    }

    /// The time and its distance: `2026-03-29 01:30:00Z (in 5m00s)`.
    pub(crate) fn both(&self, at: Instant) -> String {
        format!("{} ({})", self.at(at), self.relative(at))
    }

    /// Parses the value of an option as a time in the past. Times without an offset are in this zone.
    pub(crate) fn read(&self, flag: &str, text: &str) -> Result<Instant, CliError> {
        time_input::read(text, Direction::Back, self).map_err(|error| CliError::flag(flag, error))
    }

    /// Parses an optional time.
    pub(crate) fn read_some(&self, flag: &str, text: Option<&str>) -> Result<Option<Instant>, CliError> {
        text.map(|text| self.read(flag, text)).transpose()
    }
}

/// A duration in its two largest units.
pub(crate) fn rounded(span: Span) -> String {
    let secs = span.secs();
    let (days, hours, minutes) = (secs / 86_400, secs / 3_600 % 24, secs / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{secs}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", secs % 60),
        (0, ..) => format!("{hours}h{minutes:02}m"),
        (..100, ..) => format!("{days}d{hours:02}h"),
        _ => format!("{days}d"),
    }
}

/// A run's duration: in milliseconds if it is shorter than a second.
pub(crate) fn took(span: Span) -> String {
    match span.millis() {
        millis @ ..1_000 => format!("{millis}ms"),
        millis @ ..60_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        _ => rounded(span),
    }
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::ZoneRegistry;

    use super::*;

    fn clock(zone: &str) -> LocalTimeFormat {
        let zone = ZoneRegistry::bundled().get(zone).expect("a zone");
        LocalTimeFormat { zone, now: Instant::parse("2026-07-01T12:00:00Z").expect("a time") }
    }

    #[test]
    fn times_are_displayed_and_parsed_in_zone() {
        let (utc, berlin) = (clock("UTC"), clock("Europe/Berlin"));
        let at = Instant::parse("2026-07-01T12:05:00.7Z").expect("a time");
        assert_eq!(utc.both(at), "2026-07-01 12:05:00Z (in 5m00s)");
        assert_eq!(berlin.both(at), "2026-07-01 14:05:00+02:00 (in 5m00s)");
        assert_eq!(utc.relative(utc.now), "now");
        assert_eq!(utc.relative(utc.now.minus(Span::from_secs(7_300))), "2h01m ago");
        for (text, expected) in [
            ("2h", "2026-07-01T10:00:00Z"),
            ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("2026-07-01T14:00", "2026-07-01T12:00:00Z"),
            ("2026-07-01T14:00:00Z", "2026-07-01T14:00:00Z"),
            // Times from a table can be used as input.
            ("2026-07-01 14:05:00+02:00", "2026-07-01T12:05:00Z"),
            ("2026-07-01 12:05:00Z", "2026-07-01T12:05:00Z"),
        ] {
            let read = berlin.read("--since", text);
            assert_eq!(read.map(|at| at.to_string()).expect(text), expected, "{text}");
        }
        let Err(CliError::Usage { message, .. }) = berlin.read("--since", "soon") else { panic!("read") };
        assert!(message.starts_with("--since: "), "{message}");
    }

    #[test]
    fn short_durations_are_shown_exactly() {
        for (millis, expected) in [(0, "0ms"), (999, "999ms"), (1_250, "1.2s"), (59_999, "59.9s"), (61_000, "1m01s")] {
            assert_eq!(took(Span::from_millis(millis)), expected);
        }
    }
}
