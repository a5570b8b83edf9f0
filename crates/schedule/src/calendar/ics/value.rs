//! Values of iCalendar properties: dates, date-times with the zone they are written in, durations.

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::civil::{DAY_SECS, Day, WallTime, month_len};
use crate::text::{TextError, shortened};

/// Maximum length of a zone name in bytes.
const ZONE_NAME_MAX: usize = 128;

/// The reference frame of a date or date-time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TimeFrame {
    /// A whole day.
    Date,
    /// Local time in whatever zone the reader is in.
    Floating,
    Utc,
    /// Local time in a zone, named as in the file.
    Zone(String),
}

/// A date or a date-time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IcsMoment {
    /// Local time as written; midnight for a date.
    pub(super) local: WallTime,
    pub(super) frame: TimeFrame,
}

/// A value with its byte range in the file.
#[derive(Debug, Clone)]
pub(super) struct WithPosition<T> {
    pub(super) value: T,
    pub(super) at: Range<usize>,
}

/// An iCalendar duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IcsDuration {
    pub(super) secs: i64,
    /// Whether it has no hours, minutes or seconds.
    pub(super) whole_days: bool,
}

impl IcsMoment {
    /// Reads `20260329` or `20260329T180000`, with `Z` for UTC.
    pub(super) fn parse(text: &str, zone: Option<&str>) -> Result<Self, TextError> {
        let wrong = || {
            TextError::new(0..text.len(), format!("`{}` is not a date or a date-time", shortened(text)))
                .hint("such as 20260329, 20260329T180000 or 20260329T160000Z")
        };
        let (date, time) = match text.split_once(['T', 't']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let [year, month, day] = digits(date, [4, 2, 2]).ok_or_else(wrong)?;
        let (year, month, day) = (year.cast_signed(), month, day);
        if !(1..=12).contains(&month) || day < 1 || day > month_len(year, month) {
            return Err(TextError::new(0..date.len(), format!("there is no {date} in the calendar")));
        }
        let midnight = Day::from_ymd(year, month, day).midnight();
        let Some(time) = time else {
            return Ok(Self { local: midnight, frame: TimeFrame::Date });
        };
        let (time, utc) = match time.strip_suffix(['Z', 'z']) {
            Some(time) => (time, true),
            None => (time, false),
        };
        let [hour, minute, second] = digits(time, [2, 2, 2]).ok_or_else(wrong)?;
        if hour > 23 || minute > 59 || second > 60 {
            return Err(wrong());
        }
        // A leap second is treated as the second before it.
        let secs = hour * 3600 + minute * 60 + second.min(59);
        let frame = match zone {
            _ if utc => TimeFrame::Utc,
            Some(zone) if zone.len() > ZONE_NAME_MAX => {
                let message = format!("the name of its zone is longer than {ZONE_NAME_MAX} characters");
                return Err(TextError::new(0..text.len(), message));
            }
            Some(zone) => TimeFrame::Zone(zone.to_owned()),
            None => TimeFrame::Floating,
        };
        Ok(Self { local: WallTime(midnight.0 + i64::from(secs)), frame })
    }

    /// This moment as local time of another frame. Returns the zone's name if it is unknown. Dates and floating times
    /// are the same in every frame.
    pub(super) fn on_wall_of(&self, frame: &TimeFrame) -> Result<WallTime, String> {
        if self.frame == *frame {
            return Ok(self.local);
        }
        let utc = match &self.frame {
            TimeFrame::Date | TimeFrame::Floating => return Ok(self.local),
            _ if matches!(frame, TimeFrame::Date | TimeFrame::Floating) => return Ok(self.local),
            TimeFrame::Utc => self.local.0,
            TimeFrame::Zone(name) => {
                let zone = zone(name).ok_or_else(|| name.clone())?;
                let wall = instant(self.local.0);
                let offset = zone
                    .to_timestamp(TimeZone::UTC.to_datetime(wall))
                    .map_or(0, |utc| wall.duration_since(utc).as_secs());
                self.local.0 - offset
            }
        };
        let TimeFrame::Zone(name) = frame else { return Ok(WallTime(utc)) };
        let zone = zone(name).ok_or_else(|| name.clone())?;
        Ok(WallTime(utc + i64::from(zone.to_offset(instant(utc)).seconds())))
    }
}

impl IcsDuration {
    /// Reads `P1D`, `P2W` or `P1DT2H30M`.
    pub(super) fn parse(text: &str) -> Result<Self, TextError> {
        let wrong = || {
            TextError::new(0..text.len(), format!("`{}` is not a duration", shortened(text)))
                .hint("such as P1D, P2W or PT8H30M")
        };
        if text.starts_with('-') {
            return Err(TextError::new(0..text.len(), "a duration cannot be negative"));
        }
        let mut rest = text.strip_prefix('+').unwrap_or(text).strip_prefix('P').ok_or_else(wrong)?;
        let mut duration = Self { secs: 0, whole_days: true };
        let mut parts = 0;
        while !rest.is_empty() {
            if let Some(time) = rest.strip_prefix('T').filter(|time| duration.whole_days && !time.is_empty()) {
                duration.whole_days = false;
                rest = time;
            }
            let len = rest.bytes().take_while(u8::is_ascii_digit).count();
            let amount = rest[..len].parse::<u32>().map_err(|_| wrong())?;
            let unit = match (rest.as_bytes().get(len), duration.whole_days) {
                (Some(b'W'), true) => 7 * DAY_SECS,
                (Some(b'D'), true) => DAY_SECS,
                (Some(b'H'), false) => 3_600,
                (Some(b'M'), false) => 60,
                (Some(b'S'), false) => 1,
                _ => return Err(wrong()),
            };
            duration.secs = duration.secs.saturating_add(i64::from(amount) * unit);
            rest = &rest[len + 1..];
            parts += 1;
        }
        if parts == 0 { Err(wrong()) } else { Ok(duration) }
    }
}

/// Looks a zone up in the data compiled into the binary, so that the result does not depend on the machine.
fn zone(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

/// The instant clamped to what a zone lookup supports. Files use the year 9999 for rules without end, where the offset
/// is irrelevant.
fn instant(secs: i64) -> Timestamp {
    let (first, last) = (Timestamp::MIN.as_second() + 2 * DAY_SECS, Timestamp::MAX.as_second() - 2 * DAY_SECS);
    Timestamp::from_second(secs.clamp(first, last)).expect("clamped to what an instant can be")
}

/// Splits a text into numbers of fixed lengths that together cover all of it.
fn digits<const N: usize>(text: &str, lens: [usize; N]) -> Option<[u32; N]> {
    if text.len() != lens.iter().sum::<usize>() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut at = 0;
    let mut numbers = [0; N];
    for (number, len) in numbers.iter_mut().zip(lens) {
        *number = text[at..at + len].parse().ok()?;
        at += len;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_parsed() {
        for (text, zone, expected) in [
            ("20260329", None, Some("2026-03-29T00:00 Date")),
            ("20240229T235960", None, Some("2024-02-29T23:59:59 Floating")),
            ("20260329T180000Z", Some("Europe/Berlin"), Some("2026-03-29T18:00 Utc")),
            ("20260329T180000", Some("Europe/Berlin"), Some("2026-03-29T18:00 Zone(\"Europe/Berlin\")")),
            ("20230229", None, None),
            ("2026-03-29", None, None),
            ("20261301", None, None),
            ("20260329T24", None, None),
            ("20260329T240000", None, None),
            ("20260329T", None, None),
            ("", None, None),
            ("２０２６０３２９", None, None),
        ] {
            let moment = IcsMoment::parse(text, zone).ok().map(|m| format!("{} {:?}", m.local, m.frame));
            assert_eq!(moment.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn moments_convert_between_zones() {
        let new_york = TimeFrame::Zone("America/New_York".into());
        for (text, zone, frame, expected) in [
            ("20260102T030000Z", None, &new_york, Ok("2026-01-01T22:00")),
            ("20260701T033000", Some("Europe/Berlin"), &new_york, Ok("2026-06-30T21:30")),
            ("20260701T220000", Some("America/New_York"), &TimeFrame::Utc, Ok("2026-07-02T02:00")),
            ("20260701T220000", None, &new_york, Ok("2026-07-01T22:00")),
            ("20260701", None, &new_york, Ok("2026-07-01T00:00")),
            ("20260701T220000Z", None, &TimeFrame::Date, Ok("2026-07-01T22:00")),
            ("20260701T220000", Some("Mars"), &TimeFrame::Zone("Mars".into()), Ok("2026-07-01T22:00")),
            ("20260701T220000", Some("Mars"), &new_york, Err("Mars")),
            ("20260701T220000Z", None, &TimeFrame::Zone("Mars".into()), Err("Mars")),
            ("99991231T235959Z", None, &new_york, Ok("9999-12-31T18:59:59")),
        ] {
            let moment = IcsMoment::parse(text, zone).expect(text);
            let wall = moment.on_wall_of(frame).map(|local| local.to_string());
            assert_eq!(wall.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_parsed() {
        for (text, expected) in [
            ("P1D", Some((86_400, true))),
            ("P2W", Some((1_209_600, true))),
            ("+P1DT2H30M5S", Some((95_405, false))),
            ("PT15M", Some((900, false))),
            ("P", None),
            ("PT", None),
            ("P1DT", None),
            ("P1H", None),
            ("PT1D", None),
            ("PT1HT1M", None),
            ("-P1D", None),
            ("P99999999999D", None),
            ("1D", None),
            ("PD", None),
        ] {
            assert_eq!(IcsDuration::parse(text).ok().map(|d| (d.secs, d.whole_days)), expected, "{text}");
        }
    }
}
