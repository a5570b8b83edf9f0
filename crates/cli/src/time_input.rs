//! Parses times on the command line: `2h`, `yesterday`, `14:30`, a date, an instant. The option decides the direction of
//! a duration: `--since 2h` is in the past, `--at 2h` in the future.

use cronhold_schedule::civil::{DAY_SECS, Day, TimeOfDay, WallTime};
use cronhold_schedule::text::{did_you_mean, shortened};
use cronhold_schedule::{FoldPolicy, GapPolicy, Instant, Span, TextError, TimeBound, Zone};

use crate::render::LocalTimeFormat;

/// Direction of a duration or a time of day from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Into the past, as for `--since`.
    Back,
    /// Into the future, as for `--at`.
    Ahead,
}

/// Words for days, and their offset from today.
const DAYS: [(&str, i32); 3] = [("yesterday", -1), ("today", 0), ("tomorrow", 1)];

/// Parses a time. Dates and times without an offset are in the zone of `clock`.
pub(crate) fn read(text: &str, direction: Direction, clock: &LocalTimeFormat) -> Result<Instant, TextError> {
    let (now, zone) = (clock.now, &clock.zone);
    let word = text.trim().to_lowercase();
    let today = zone.local(now.secs()).day();
    if word == "now" {
        return Ok(now);
    }
    if let Some((_, days)) = DAYS.iter().find(|(name, _)| *name == word) {
        return Ok(instant_of(Day(today.0 + days).midnight(), zone));
    }
    if let Ok(time) = TimeOfDay::parse(&word) {
        return Ok(time_of_day(time, direction, now, zone));
    }
    if let Ok(bound) = TimeBound::parse(text) {
        return match bound {
            // A bound has whole seconds only; an instant is taken as exactly as it is written.
            TimeBound::Instant(_) => Instant::parse(text),
            TimeBound::Local(local) => Ok(instant_of(local, zone)),
            TimeBound::Day(day) => Ok(instant_of(day.midnight(), zone)),
        };
    }
    span(&word, direction, now).unwrap_or_else(|| Err(not_a_time(text, &word, direction)))
}

/// Parses a duration such as `2h`, `-2h`, `2h ago`, `+2h` or `in 2h`. Returns `None` if the text is not one.
fn span(word: &str, direction: Direction, now: Instant) -> Option<Result<Instant, TextError>> {
    let (rest, direction) = if let Some(rest) = word.strip_suffix(" ago").or_else(|| word.strip_prefix('-')) {
        (rest, Direction::Back)
    } else if let Some(rest) = word.strip_prefix("in ").or_else(|| word.strip_prefix('+')) {
        (rest, Direction::Ahead)
    } else {
        (word, direction)
    };
    // A bare number is ambiguous: it may be a year, minutes or hours.
    if !rest.contains(char::is_alphabetic) {
        return None;
    }
    let span = Span::parse(rest).ok()?;
    Some(Ok(match direction {
        Direction::Back => now.minus(span),
        Direction::Ahead => now.plus(span),
    }))
}

/// The latest instant with this time of day, or the next one.
fn time_of_day(time: TimeOfDay, direction: Direction, now: Instant, zone: &Zone) -> Instant {
    let midnight = zone.local(now.secs()).day().midnight();
    let on_day = |days: i64| instant_of(WallTime(midnight.0 + days * DAY_SECS + i64::from(time.0)), zone);
    let today = on_day(0);
    match direction {
        Direction::Back if today > now => on_day(-1),
        Direction::Ahead if today < now => on_day(1),
        Direction::Back | Direction::Ahead => today,
    }
}

/// The instant of a local time: the first if it occurs twice, the end of the gap if it does not exist.
fn instant_of(local: WallTime, zone: &Zone) -> Instant {
    Instant::from_secs(zone.instants(local, GapPolicy::Next, FoldPolicy::First).next().unwrap_or(local.0))
}

fn not_a_time(text: &str, word: &str, direction: Direction) -> TextError {
    let error = TextError::new(0..text.len(), format!("`{}` is not a time", shortened(text)));
    if word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('-') {
        // It looks like a date, so report the error of the date parser.
        return TimeBound::parse(text).err().unwrap_or(error);
    }
    if let Some(meant) = did_you_mean(word, DAYS.iter().map(|(name, _)| *name).chain(["now"])) {
        return error.hint(format!("did you mean `{meant}`?"));
    }
    error.hint(match direction {
        Direction::Back => "write 2h, yesterday, 14:30, 2026-11-01, or 2026-11-01T02:00:00Z",
        Direction::Ahead => "write 2h, tomorrow, 14:30, 2026-11-01, or 2026-11-01T02:00:00Z",
    })
}

#[cfg(test)]
mod tests {
    use cronhold_schedule::ZoneRegistry;

    use super::*;

    fn berlin() -> LocalTimeFormat {
        let zone = ZoneRegistry::bundled().get("Europe/Berlin").expect("a zone");
        LocalTimeFormat { zone, now: Instant::parse("2026-11-16T11:00:00Z").expect("an instant") }
    }

    #[test]
    fn relative_and_absolute_times_are_parsed() {
        use Direction::{Ahead, Back};
        for (text, direction, expected) in [
            ("now", Back, "2026-11-16T11:00:00Z"),
            ("2h", Back, "2026-11-16T09:00:00Z"),
            ("2h", Ahead, "2026-11-16T13:00:00Z"),
            ("+90s", Back, "2026-11-16T11:01:30Z"),
            ("in 1h30m", Ahead, "2026-11-16T12:30:00Z"),
            ("3 days ago", Back, "2026-11-13T11:00:00Z"),
            ("-1d", Back, "2026-11-15T11:00:00Z"),
            ("Yesterday", Back, "2026-11-14T23:00:00Z"),
            ("today", Back, "2026-11-15T23:00:00Z"),
            ("tomorrow", Ahead, "2026-11-16T23:00:00Z"),
            ("11:30", Back, "2026-11-16T10:30:00Z"),
            ("12:30", Back, "2026-11-15T11:30:00Z"),
            ("11:30", Ahead, "2026-11-17T10:30:00Z"),
            ("12:30:15", Ahead, "2026-11-16T11:30:15Z"),
            ("2026-11-01", Back, "2026-10-31T23:00:00Z"),
            ("2026-11-01T02:00:00", Back, "2026-11-01T01:00:00Z"),
            ("2026-11-01T02:00:00.25+05:30", Back, "2026-10-31T20:30:00.25Z"),
            ("2026-03-29T02:30:00", Back, "2026-03-29T01:00:00Z"),
        ] {
            let read = read(text, direction, &berlin()).expect(text);
            assert_eq!(read.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn invalid_time_is_refused_with_hint() {
        for (text, expected) in [
            ("yesteday", "did you mean `yesterday`?"),
            ("90", "write 2h, yesterday"),
            ("2026", "write 2h, yesterday"),
            ("2x", "write 2h, yesterday"),
            ("2026-13-01", "`2026-13-01` is not a point in time"),
            ("", "write 2h, yesterday"),
        ] {
            let error = read(text, Direction::Back, &berlin()).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
