//! Date files: one date per line, for example a list of holidays.

use super::Calendar;
use super::bitmap::{DayBitmap, FIRST_DAY, LAST_DAY};
use super::mistakes::{CalendarMistakes, check_len};
use crate::civil::Day;
use crate::text::{TextError, did_you_mean};

/// A date with the byte range of its token in the file.
struct DatedWord {
    day: Day,
    at: usize,
    len: usize,
}

#[derive(Default)]
struct DateFile {
    start: Option<DatedWord>,
    stop: Option<DatedWord>,
    dates: Vec<DatedWord>,
    mistakes: CalendarMistakes,
}

/// Parses a date file. Returns all errors of the file.
pub(super) fn read(text: &str) -> Result<Calendar, Vec<TextError>> {
    check_len(text)?;
    let mut file = DateFile::default();
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut at = text.len() - body.len();
    for line in body.split_inclusive('\n') {
        file.line(line, at);
        at += line.len();
        if file.mistakes.is_full() {
            break;
        }
    }
    file.calendar()
}

impl DateFile {
    fn line(&mut self, line: &str, at: usize) {
        let Some((word, word_at)) = first_word(line, 0) else { return };
        let bound = match word.to_ascii_uppercase().as_str() {
            "START" => Some(&mut self.start),
            "STOP" => Some(&mut self.stop),
            _ => None,
        };
        let Some(bound) = bound else {
            match dated(word, at + word_at) {
                Ok(date) => self.dates.push(date),
                Err(mistake) => self.mistakes.push(mistake),
            }
            return;
        };
        let keyword = at + word_at..at + word_at + word.len();
        let Some((date, date_at)) = first_word(line, word_at + word.len()) else {
            let mistake = TextError::new(keyword, format!("expected a date after `{word}`"));
            self.mistakes.push(mistake.hint("such as `START 2026-01-01`"));
            return;
        };
        match dated(date, at + date_at) {
            Ok(_) if bound.is_some() => {
                self.mistakes.push(TextError::new(keyword, format!("duplicate `{word}`")));
            }
            Ok(date) => *bound = Some(date),
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    fn calendar(mut self) -> Result<Calendar, Vec<TextError>> {
        if let (Some(start), Some(stop)) = (&self.start, &self.stop)
            && stop.day <= start.day
        {
            let message = format!("STOP {} is not after START {}", stop.day, start.day);
            self.mistakes.push(TextError::new(stop.at..stop.at + stop.len, message));
            return self.mistakes.or(Calendar::none());
        }
        let mut days = DayBitmap::new();
        for date in &self.dates {
            match self.misplaced(date.day) {
                Some(message) => self.mistakes.push(TextError::new(date.at..date.at + date.len, message)),
                None => days.insert(date.day, date.day),
            }
        }
        let known_until = match &self.stop {
            Some(stop) => Some(stop.day.plus(-1)),
            None => self.dates.iter().map(|date| date.day).max(),
        };
        self.mistakes.or(Calendar::listed(days, known_until))
    }

    /// The reason why a date is not allowed in this file; `None` if it is allowed.
    fn misplaced(&self, day: Day) -> Option<String> {
        if day < FIRST_DAY || day > LAST_DAY {
            return Some(format!("{day} is outside the days that schedules run on, {FIRST_DAY} to {LAST_DAY}"));
        }
        match (&self.start, &self.stop) {
            (Some(start), _) if day < start.day => Some(format!("{day} is before START {}", start.day)),
            (_, Some(stop)) if day >= stop.day => {
                Some(format!("{day} is not before STOP {}, which is excluded", stop.day))
            }
            _ => None,
        }
    }
}

/// The first word of a line at or after `from`, with its offset. `None` if only blanks or a comment remain.
fn first_word(line: &str, from: usize) -> Option<(&str, usize)> {
    let rest = line[from..].trim_start();
    let at = line.len() - rest.len();
    let word = rest.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '#')).next()?;
    // A line that begins with a comma has no word but is not empty: report the whole line.
    let word = if word.is_empty() && !rest.starts_with('#') { rest.trim_end() } else { word };
    (!word.is_empty()).then_some((word, at))
}

fn dated(word: &str, at: usize) -> Result<DatedWord, TextError> {
    match Day::parse(word) {
        Ok(day) => Ok(DatedWord { day, at, len: word.len() }),
        Err(mistake) => Err(match did_you_mean(word, ["START", "STOP"]) {
            Some(meant) => mistake.hint(format!("did you mean `{meant}`?")),
            None => mistake,
        }
        .shifted(at)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn days(calendar: &Calendar) -> Vec<String> {
        let mut days = Vec::new();
        let mut from = FIRST_DAY;
        while let Some(day) = calendar.next(from) {
            days.push(day.to_string());
            from = day.plus(1);
        }
        days
    }

    #[test]
    fn reads_files() {
        for (text, expected, known_until) in [
            ("", vec![], None),
            ("# nothing\n\n   \n", vec![], None),
            ("2026-01-01\n2025-12-25", vec!["2025-12-25", "2026-01-01"], Some("2026-01-01")),
            ("2026-01-01 New Year's Day\r\n2026-01-01\r\n", vec!["2026-01-01"], Some("2026-01-01")),
            (
                "\u{feff}2026-01-01,New Year\n  2026-01-06;Epiphany",
                vec!["2026-01-01", "2026-01-06"],
                Some("2026-01-06"),
            ),
            ("START 2026-01-01\nSTOP 2027-01-01\n\n2026-12-31#last", vec!["2026-12-31"], Some("2026-12-31")),
            ("2026-05-01\nstop 2030-01-01 not included", vec!["2026-05-01"], Some("2029-12-31")),
            ("START 1900-01-01\nSTOP 2200-01-01", vec![], Some("2100-12-31")),
            // Easter Mondays: no rule gives them, so they are listed.
            ("2026-04-06\n2027-03-29\n2028-04-17", vec!["2026-04-06", "2027-03-29", "2028-04-17"], Some("2028-04-17")),
        ] {
            let calendar = Calendar::from_dates(text).expect(text);
            assert_eq!(days(&calendar), expected, "{text}");
            assert_eq!(calendar.known_until().map(|day| day.to_string()).as_deref(), known_until, "{text}");
        }
    }

    #[test]
    fn reports_errors_with_positions() {
        for (text, mistakes) in [
            ("2026-02-30", vec![(0..10, "there is no 2026-02-30")]),
            ("2026-01-01\n 01/02/2026 x", vec![(12..22, "`01/02/2026` is not a date")]),
            ("STRAT 2026-01-01", vec![(0..5, "did you mean `START`?")]),
            ("START\n", vec![(0..5, "expected a date after `START`")]),
            ("START # x", vec![(0..5, "expected a date after `START`")]),
            ("STOP soon", vec![(5..9, "`soon` is not a date")]),
            ("START 2026-01-01\nSTART 2026-01-02", vec![(17..22, "duplicate `START`")]),
            ("START 2026-01-01\nSTOP 2026-01-01", vec![(22..32, "is not after START")]),
            ("1969-12-31\n2101-01-01", vec![(0..10, "outside the days"), (11..21, "outside the days")]),
            (
                "2025-12-31\nSTART 2026-01-01\nSTOP 2026-02-01\n2026-02-01",
                vec![(0..10, "before START 2026-01-01"), (44..54, "not before STOP 2026-02-01")],
            ),
            (",x", vec![(0..2, "`,x` is not a date")]),
        ] {
            let found = Calendar::from_dates(text).expect_err(text);
            assert_eq!(found.len(), mistakes.len(), "{text}: {found:?}");
            for (found, (at, message)) in found.iter().zip(mistakes) {
                assert_eq!(found.at, at, "{text}");
                assert!(found.to_string().contains(message), "{text}: {found}");
            }
        }
    }

    #[test]
    fn errors_and_file_size_are_limited() {
        assert_eq!(Calendar::from_dates(&"x\n".repeat(5_000)).expect_err("garbage").len(), 100);
        let long = "2026-01-01\n".repeat(400_000);
        assert!(Calendar::from_dates(&long).expect_err("too long")[0].message.contains("at most 4 MiB"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "((START|STOP|#|20[0-9]{2}-0[0-9]-[0-3][0-9])?\\PC{0,6}\r?\n?){0,8}") {
            if let Err(mistakes) = Calendar::from_dates(&text) {
                for mistake in mistakes {
                    prop_assert!(text.get(mistake.at).is_some(), "the place is in the text");
                }
            }
        }
    }
}
