//! A schedule written as one text: a cron expression, an @-word, `@every 90s`, or a phrase such as `with 10m interval`,
//! each after an optional `CRON_TZ=Zone`. Also the texts of bounds and policies.

use crate::civil::{Day, TimeOfDay, WallTime};
use crate::cron::CronExpr;
use crate::instant::Instant;
use crate::span::Span;
use crate::spec::{FoldPolicy, GapPolicy, ScheduleSpec, TimeBound, Timing};
use crate::text::{TextError, did_you_mean, not_a, shortened};

/// The @-words and their cron expressions.
const WORDS: [(&str, &str); 8] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
    ("@minutely", "* * * * *"),
];

/// Texts with more words than this are not phrases.
const WORDS_MAX: usize = 16;
/// Maximum length of a zone name in bytes.
const ZONE_MAX: usize = 64;

impl ScheduleSpec {
    /// Parses a schedule that is written as one text.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let start = text.len() - text.trim_start().len();
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(TextError::new(0..text.len(), "expected a schedule")
                .hint("such as `0 18 * * Mon-Fri`, `@every 15m` or `with 10m interval`"));
        }
        let zoned = ["CRON_TZ=", "TZ="].into_iter().find(|prefix| trimmed.starts_with(prefix));
        let Some(prefix) = zoned else {
            return Ok(Self::new(timing(trimmed).map_err(|error| error.shifted(start))?));
        };
        let zone_end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        let zone = &trimmed[prefix.len()..zone_end];
        let rest = trimmed[zone_end..].trim_start();
        let rest_at = start + trimmed.len() - rest.len();
        if zone.is_empty() || rest.is_empty() {
            return Err(TextError::new(
                start..start + zone_end,
                format!("expected `{prefix}Zone` and then a schedule"),
            )
            .hint(format!("such as `{prefix}Europe/Berlin 0 18 * * *`")));
        }
        if zone.len() > ZONE_MAX {
            let at = start + prefix.len()..start + zone_end;
            return Err(TextError::new(at, format!("there is no time zone `{}`", shortened(zone))));
        }
        let mut spec = Self::new(timing(rest).map_err(|error| error.shifted(rest_at))?);
        spec.zone = Some(zone.to_owned());
        Ok(spec)
    }

    /// Byte range of the zone in a text with a `CRON_TZ=` prefix, for error positions.
    pub fn zone_place(text: &str) -> std::ops::Range<usize> {
        let start = text.find('=').map_or(0, |equals| equals + 1);
        let end = text[start..].find(char::is_whitespace).map_or(text.len(), |len| start + len);
        start..end
    }
}

fn timing(text: &str) -> Result<Timing, TextError> {
    if text.starts_with('@') {
        return at_word(text);
    }
    let words: Vec<&str> = text.split_whitespace().take(WORDS_MAX).collect();
    match words.as_slice() {
        ["continuously"] => Ok(Timing::After { interval: Span::ZERO }),
        ["triggered"] => Ok(Timing::Triggered),
        ["with", span @ .., "interval"] if !span.is_empty() && words.len() < WORDS_MAX => {
            let at = "with".len() + text["with".len()..].find(span[0]).unwrap_or(0);
            let span = text[at..].trim_end_matches("interval").trim_end();
            let interval = Span::parse(span).map_err(|error| error.shifted(at))?;
            if !interval.is_whole_secs() {
                return Err(TextError::new(at..at + span.len(), "an interval must be whole seconds"));
            }
            Ok(Timing::After { interval })
        }
        ["every", span] if Span::parse(span).is_ok() => {
            Err(TextError::new(0..text.len(), "expected `@every`").hint(format!("did you mean `@every {span}`?")))
        }
        ["with", ..] => Err(TextError::new(0..text.len(), "expected `with SPAN interval`")
            .hint("such as `with 10m interval`: ten minutes after the previous run ended")),
        [word] if word.bytes().all(|byte| byte.is_ascii_alphabetic()) => Err(unknown_word(word)),
        _ => Ok(Timing::Cron(CronExpr::parse(text)?)),
    }
}

fn at_word(text: &str) -> Result<Timing, TextError> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let lower = word.to_ascii_lowercase();
    if lower == "@every" {
        let at = text.len() - rest.trim_start().len();
        let interval = Span::parse(rest.trim()).map_err(|error| error.shifted(at))?;
        if interval < Span::from_secs(1) || !interval.is_whole_secs() {
            return Err(TextError::new(at..text.len(), "an interval must be whole seconds, at least one"));
        }
        return Ok(Timing::Every { interval, phase: Span::ZERO });
    }
    if !rest.trim().is_empty() {
        let at = text.len() - rest.trim_start().len();
        return Err(TextError::new(at..text.len(), format!("expected nothing more after `{}`", shortened(word))));
    }
    match lower.as_str() {
        "@never" => return Ok(Timing::Never),
        "@reboot" => return Ok(Timing::Reboot),
        _ => {}
    }
    match WORDS.iter().find(|(known, _)| *known == lower) {
        Some((_, expression)) => Ok(Timing::Cron(CronExpr::parse(expression)?)),
        None => Err(unknown_word(word)),
    }
}

fn unknown_word(word: &str) -> TextError {
    let known = WORDS.iter().map(|(word, _)| *word);
    let known = known.chain(["@never", "@reboot", "@every", "continuously", "triggered"]);
    let error = TextError::new(0..word.len(), format!("`{}` is not a schedule", shortened(word)));
    match did_you_mean(word, known) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint("a cron expression, @daily, @every 15m, with 10m interval, continuously or triggered"),
    }
}

impl TimeBound {
    /// Parses a date, a local date and time, or an instant with an offset.
    pub fn parse(whole: &str) -> Result<Self, TextError> {
        let text = whole.trim();
        if let Ok(day) = Day::parse(text) {
            return Ok(Self::Day(day));
        }
        if let Ok(instant) = Instant::parse(text) {
            return Ok(Self::Instant(Instant::from_secs(instant.secs())));
        }
        let local = text.split_once(['T', ' ']).and_then(|(day, time)| {
            let time = TimeOfDay::parse(time.trim()).ok()?;
            Some(WallTime(Day::parse(day).ok()?.midnight().0 + i64::from(time.0)))
        });
        local.map(Self::Local).ok_or_else(|| {
            not_a(text, "a point in time")
                .hint("write 2026-03-29, 2026-03-29T18:00 or 2026-03-29T18:00:00+02:00")
                .shifted(whole.len() - whole.trim_start().len())
        })
    }
}

impl std::fmt::Display for TimeBound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Instant(instant) => instant.fmt(f),
            Self::Local(local) => local.fmt(f),
            Self::Day(day) => day.fmt(f),
        }
    }
}

impl GapPolicy {
    /// All values as they are written in a job file.
    pub const NAMES: [&str; 2] = ["next", "skip"];

    pub fn parse(text: &str) -> Result<Self, TextError> {
        match text {
            "next" => Ok(Self::Next),
            "skip" => Ok(Self::Skip),
            _ => Err(not_one_of(text, "gap", &Self::NAMES)),
        }
    }

    /// The value as it is written in a job file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Skip => "skip",
        }
    }
}

impl FoldPolicy {
    /// All values as they are written in a job file.
    pub const NAMES: [&str; 3] = ["first", "second", "both"];

    pub fn parse(text: &str) -> Result<Self, TextError> {
        match text {
            "first" => Ok(Self::First),
            "second" => Ok(Self::Second),
            "both" => Ok(Self::Both),
            _ => Err(not_one_of(text, "fold", &Self::NAMES)),
        }
    }

    /// The value as it is written in a job file.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Both => "both",
        }
    }
}

fn not_one_of(text: &str, what: &str, known: &[&'static str]) -> TextError {
    let error = not_a(text, &format!("a {what} policy"));
    match did_you_mean(text, known.iter().copied()) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint(known.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_texts() {
        for (text, canonical) in [
            ("@daily", "0 0 * * *"),
            ("@Hourly", "0 * * * *"),
            ("@every 90s", "@every 1m30s"),
            ("@never", "@never"),
            ("@reboot", "@reboot"),
            ("triggered", "triggered"),
            ("continuously", "continuously"),
            ("with 10m interval", "with 10m interval"),
            ("with  1h 30m  interval", "with 1h30m interval"),
            ("with 0s interval", "continuously"),
            ("  0 18 * * MON-fri ", "0 18 * * 1-5"),
            ("CRON_TZ=Europe/Berlin 0 18 * * *", "CRON_TZ=Europe/Berlin 0 18 * * *"),
            ("TZ=UTC @daily", "CRON_TZ=UTC 0 0 * * *"),
        ] {
            let spec = ScheduleSpec::parse(text).expect(text);
            assert_eq!(spec.to_string(), canonical, "{text}");
            assert_eq!(ScheduleSpec::parse(canonical).as_ref(), Ok(&spec), "{text}");
        }
    }

    #[test]
    fn reports_errors_with_positions() {
        for (text, at, message) in [
            ("", 0..0, "expected a schedule"),
            ("@dialy", 0..6, "`@dialy` is not a schedule (did you mean `@daily`?)"),
            ("@every", 6..6, "expected a span of time"),
            ("@every 5x", 8..9, "`x` is not a unit"),
            ("@every 500ms", 7..12, "whole seconds"),
            ("@daily 5", 7..8, "expected nothing more"),
            ("with ten interval", 5..8, "expected a span of time"),
            ("with 10m", 0..8, "expected `with SPAN interval`"),
            ("continuosly", 0..11, "did you mean `continuously`"),
            ("CRON_TZ=Europe/Berlin", 0..21, "and then a schedule"),
            ("CRON_TZ=Europe/Berlin 0 25 * * *", 24..26, "hour must be 0–23, not 25"),
        ] {
            let error = ScheduleSpec::parse(text).expect_err(text);
            assert!(error.to_string().contains(message), "{text}: {error}");
            assert_eq!(error.at, at, "{text}");
        }
    }

    #[test]
    fn reads_bounds() {
        for (text, printed) in [
            ("2026-03-29", "2026-03-29"),
            ("2026-03-29T18:00", "2026-03-29T18:00"),
            ("2026-03-29 18:00:30", "2026-03-29T18:00:30"),
            ("2026-03-29T18:00:00+02:00", "2026-03-29T16:00:00Z"),
        ] {
            let bound = TimeBound::parse(text).expect(text);
            assert_eq!(bound.to_string(), printed);
            assert_eq!(TimeBound::parse(printed), Ok(bound));
        }
        assert!(TimeBound::parse("soon").is_err());
    }
}
