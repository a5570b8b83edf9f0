//! Recurrence rules as text (RRULE). Parts that need more than whole days, and parts that are not implemented, are
//! errors: a rule is followed exactly or rejected.

use super::super::mistakes::CalendarMistakes;
use super::value::IcsMoment;
use crate::text::{TextError, did_you_mean, shortened};

/// The FREQ part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecurrenceFrequency {
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

/// A rule as written. Bit sets are empty when the part is absent.
#[derive(Debug, Clone)]
pub(super) struct RecurrenceRule {
    pub(super) freq: RecurrenceFrequency,
    /// At least 1.
    pub(super) interval: i32,
    pub(super) count: Option<u32>,
    pub(super) until: Option<IcsMoment>,
    /// Bit 1 is January.
    pub(super) months: u32,
    /// Bit 1 is the first of the month.
    pub(super) month_days: u32,
    /// Bit 1 is the last of the month.
    pub(super) month_days_from_end: u32,
    /// Bit 0 is Sunday: every such day.
    pub(super) weekdays: u8,
    /// For each weekday: bit 1 is the first one of the month or year.
    pub(super) nth: [u64; 7],
    /// For each weekday: bit 1 is the last one of the month or year.
    pub(super) nth_from_end: [u64; 7],
    /// 0 is Sunday.
    pub(super) week_start: u32,
}

const PARTS: [&str; 8] = ["FREQ", "INTERVAL", "COUNT", "UNTIL", "BYMONTH", "BYMONTHDAY", "BYDAY", "WKST"];
const UNSUPPORTED_PARTS: [&str; 8] =
    ["BYSETPOS", "BYWEEKNO", "BYYEARDAY", "BYHOUR", "BYMINUTE", "BYSECOND", "RSCALE", "SKIP"];
const UNSUPPORTED_FREQS: [&str; 3] = ["HOURLY", "MINUTELY", "SECONDLY"];
const WEEKDAY_CODES: [&str; 7] = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];
const INSTEAD: &str = "list the days as events of their own, or in a file of dates";

impl RecurrenceRule {
    /// Reads `FREQ=YEARLY;BYMONTH=11;BYDAY=4TH`. All its mistakes are reported.
    pub(super) fn parse(text: &str) -> Result<Self, Vec<TextError>> {
        let mut reader = RuleParser { rule: Self::empty(), freq: None, seen: 0, mistakes: CalendarMistakes::default() };
        let mut at = 0;
        for part in text.split(';') {
            if !part.is_empty()
                && let Err(mistake) = reader.part(part)
            {
                reader.mistakes.push(mistake.shifted(at));
            }
            at += part.len() + 1;
        }
        reader.finish(text)
    }

    /// Whether it ends by itself.
    pub(super) fn is_bounded(&self) -> bool {
        self.count.is_some() || self.until.is_some()
    }

    /// Whether it names weekdays.
    pub(super) fn has_weekdays(&self) -> bool {
        self.weekdays != 0 || self.has_ordinals()
    }

    /// Whether it names days of the month.
    pub(super) fn has_month_days(&self) -> bool {
        self.month_days != 0 || self.month_days_from_end != 0
    }

    fn has_ordinals(&self) -> bool {
        self.nth.iter().chain(&self.nth_from_end).any(|bits| *bits != 0)
    }

    fn empty() -> Self {
        Self {
            freq: RecurrenceFrequency::Daily,
            interval: 1,
            count: None,
            until: None,
            months: 0,
            month_days: 0,
            month_days_from_end: 0,
            weekdays: 0,
            nth: [0; 7],
            nth_from_end: [0; 7],
            week_start: 1,
        }
    }
}

struct RuleParser {
    rule: RecurrenceRule,
    freq: Option<RecurrenceFrequency>,
    /// Which of `PARTS` have been read.
    seen: u32,
    mistakes: CalendarMistakes,
}

impl RuleParser {
    fn part(&mut self, part: &str) -> Result<(), TextError> {
        let Some((name, value)) = part.split_once('=') else {
            let message = format!("expected NAME=value, found `{}`", shortened(part));
            return Err(TextError::new(0..part.len(), message));
        };
        let Some(index) = PARTS.iter().position(|known| name.eq_ignore_ascii_case(known)) else {
            return Err(unknown_part(name, part.len()));
        };
        let name = PARTS[index];
        if self.seen >> index & 1 == 1 {
            return Err(TextError::new(0..part.len(), format!("duplicate {name} in this rule")));
        }
        self.seen |= 1 << index;
        let read = match name {
            "FREQ" => freq(value).map(|freq| self.freq = Some(freq)),
            "INTERVAL" => positive(name, value).map(|interval| self.rule.interval = interval.cast_signed()),
            "COUNT" => positive(name, value).map(|count| self.rule.count = Some(count)),
            "UNTIL" => IcsMoment::parse(value, None).map(|until| self.rule.until = Some(until)),
            "BYMONTH" => self.each(value, Self::month),
            "BYMONTHDAY" => self.each(value, Self::month_day),
            "BYDAY" => self.each(value, Self::weekday),
            _ => weekday_code(value).map(|weekday| self.rule.week_start = weekday),
        };
        read.map_err(|mistake| mistake.shifted(name.len() + 1))
    }

    /// Parses the elements of a list and stops at the first error.
    fn each(&mut self, list: &str, read: fn(&mut Self, &str) -> Result<(), TextError>) -> Result<(), TextError> {
        let mut at = 0;
        for item in list.split(',') {
            read(self, item).map_err(|mistake| mistake.shifted(at))?;
            at += item.len() + 1;
        }
        Ok(())
    }

    fn month(&mut self, item: &str) -> Result<(), TextError> {
        let month = item.parse::<u32>().ok().filter(|month| (1..=12).contains(month));
        self.rule.months |= 1 << month.ok_or_else(|| not_in(item, "a month from 1 to 12"))?;
        Ok(())
    }

    fn month_day(&mut self, item: &str) -> Result<(), TextError> {
        let day = item.parse::<i32>().ok().filter(|day| (1..=31).contains(&day.unsigned_abs()));
        let day = day.ok_or_else(|| not_in(item, "a day of the month from 1 to 31 or -31 to -1"))?;
        let bit = 1 << day.unsigned_abs();
        if day > 0 {
            self.rule.month_days |= bit;
        } else {
            self.rule.month_days_from_end |= bit;
        }
        Ok(())
    }

    fn weekday(&mut self, item: &str) -> Result<(), TextError> {
        let code_at = item.len() - item.bytes().rev().take_while(u8::is_ascii_alphabetic).count();
        let (ordinal, code) = item.split_at(code_at);
        let weekday = weekday_code(code).map_err(|mistake| mistake.shifted(code_at))?;
        if ordinal.is_empty() {
            self.rule.weekdays |= 1 << weekday;
            return Ok(());
        }
        let number = ordinal.parse::<i32>().ok().filter(|number| (1..=53).contains(&number.unsigned_abs()));
        let number = number.ok_or_else(|| not_in(ordinal, "a number from 1 to 53 or -53 to -1"))?;
        let sets = if number > 0 { &mut self.rule.nth } else { &mut self.rule.nth_from_end };
        sets[weekday as usize] |= 1 << number.unsigned_abs();
        Ok(())
    }

    /// Checks the rule as a whole.
    fn finish(mut self, text: &str) -> Result<RecurrenceRule, Vec<TextError>> {
        let mut wrong = |message: &str, hint: &str| {
            self.mistakes.push(TextError::new(0..text.len(), message).hint(hint));
        };
        match self.freq {
            Some(freq) => self.rule.freq = freq,
            None if self.seen & 1 == 0 => wrong("this rule has no FREQ", "FREQ is DAILY, WEEKLY, MONTHLY or YEARLY"),
            // The invalid FREQ has already been reported.
            None => {}
        }
        if self.rule.count.is_some() && self.rule.until.is_some() {
            wrong("this rule has both COUNT and UNTIL", "leave one of them out");
        }
        if matches!(self.freq, Some(RecurrenceFrequency::Daily | RecurrenceFrequency::Weekly))
            && self.rule.has_ordinals()
        {
            wrong("BYDAY with a number needs FREQ=MONTHLY or FREQ=YEARLY", "write the weekday alone, such as BYDAY=MO");
        }
        if self.freq == Some(RecurrenceFrequency::Weekly) && self.rule.has_month_days() {
            wrong("BYMONTHDAY has no meaning with FREQ=WEEKLY", "write FREQ=MONTHLY or leave BYMONTHDAY out");
        }
        self.mistakes.or(self.rule)
    }
}

fn freq(value: &str) -> Result<RecurrenceFrequency, TextError> {
    let known = [
        ("DAILY", RecurrenceFrequency::Daily),
        ("WEEKLY", RecurrenceFrequency::Weekly),
        ("MONTHLY", RecurrenceFrequency::Monthly),
        ("YEARLY", RecurrenceFrequency::Yearly),
    ];
    if let Some((_, freq)) = known.iter().find(|(name, _)| value.eq_ignore_ascii_case(name)) {
        return Ok(*freq);
    }
    if let Some(unsupported) = UNSUPPORTED_FREQS.iter().find(|name| value.eq_ignore_ascii_case(name)) {
        let message = format!("FREQ={unsupported} is not supported: a calendar is made of days");
        return Err(TextError::new(0..value.len(), message).hint("FREQ is DAILY, WEEKLY, MONTHLY or YEARLY"));
    }
    let error = TextError::new(0..value.len(), format!("`{}` is not a frequency", shortened(value)));
    Err(match did_you_mean(value, known.map(|(name, _)| name)) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint("FREQ is DAILY, WEEKLY, MONTHLY or YEARLY"),
    })
}

fn unknown_part(name: &str, len: usize) -> TextError {
    if let Some(unsupported) = UNSUPPORTED_PARTS.iter().find(|known| name.eq_ignore_ascii_case(known)) {
        return TextError::new(0..len, format!("{unsupported} is not supported in a rule")).hint(INSTEAD);
    }
    let error = TextError::new(0..name.len(), format!("`{}` is not a part of a rule", shortened(name)));
    match did_you_mean(name, PARTS) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint(format!("parts are {}", PARTS.join(", "))),
    }
}

fn positive(name: &str, value: &str) -> Result<u32, TextError> {
    let digits = (1..=9).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse::<u32>().ok().filter(|number| digits && *number > 0);
    number.ok_or_else(|| not_in(value, &format!("a number of at least 1 for {name}")))
}

fn weekday_code(code: &str) -> Result<u32, TextError> {
    let found = (0..7).zip(WEEKDAY_CODES).find(|(_, known)| code.eq_ignore_ascii_case(known));
    found.map(|(weekday, _)| weekday).ok_or_else(|| not_in(code, "one of SU, MO, TU, WE, TH, FR, SA"))
}

fn not_in(found: &str, expected: &str) -> TextError {
    TextError::new(0..found.len(), format!("expected {expected}, found `{}`", shortened(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_errors_with_positions() {
        for (text, mistakes) in [
            ("", vec![(0..0, "no FREQ")]),
            ("COUNT=2", vec![(0..7, "no FREQ")]),
            ("FREQ=HOURLY", vec![(5..11, "FREQ=HOURLY is not supported")]),
            ("FREQ=YEERLY", vec![(5..11, "did you mean `YEARLY`?")]),
            ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-1", vec![(22..33, "BYSETPOS is not supported")]),
            ("FREQ=YEARLY;BYWEEKNO=20", vec![(12..23, "BYWEEKNO is not supported")]),
            ("FREQ=YEARLY;BYYEARDAY=1;BYHOUR=2", vec![(12..23, "BYYEARDAY"), (24..32, "BYHOUR")]),
            ("FREQ=DAILY;INTERVALL=2", vec![(11..20, "did you mean `INTERVAL`?")]),
            ("FREQ=DAILY;INTERVAL=0", vec![(20..21, "at least 1 for INTERVAL")]),
            ("FREQ=DAILY;COUNT=+5", vec![(17..19, "at least 1 for COUNT")]),
            ("FREQ=DAILY;COUNT=9999999999", vec![(17..27, "at least 1 for COUNT")]),
            ("FREQ=DAILY;COUNT=2;UNTIL=20260101", vec![(0..33, "both COUNT and UNTIL")]),
            ("FREQ=DAILY;FREQ=DAILY", vec![(11..21, "duplicate FREQ in this rule")]),
            ("FREQ=DAILY;UNTIL=tomorrow", vec![(17..25, "`tomorrow` is not a date")]),
            ("FREQ=YEARLY;BYMONTH=1,13", vec![(22..24, "a month from 1 to 12")]),
            ("FREQ=MONTHLY;BYMONTHDAY=0", vec![(24..25, "a day of the month")]),
            ("FREQ=MONTHLY;BYMONTHDAY=-32", vec![(24..27, "a day of the month")]),
            ("FREQ=MONTHLY;BYDAY=1XX", vec![(20..22, "one of SU, MO")]),
            ("FREQ=MONTHLY;BYDAY=MO,0TU", vec![(22..23, "from 1 to 53")]),
            ("FREQ=MONTHLY;BYDAY=54TU", vec![(19..21, "from 1 to 53")]),
            ("FREQ=WEEKLY;BYDAY=1MO", vec![(0..21, "needs FREQ=MONTHLY")]),
            ("FREQ=WEEKLY;BYMONTHDAY=1", vec![(0..24, "no meaning with FREQ=WEEKLY")]),
            ("FREQ=DAILY;COUNT", vec![(11..16, "expected NAME=value")]),
            ("FREQ=WEEKLY;WKST=XX", vec![(17..19, "one of SU, MO")]),
        ] {
            let found = RecurrenceRule::parse(text).expect_err(text);
            assert_eq!(found.len(), mistakes.len(), "{text}: {found:?}");
            for (found, (at, message)) in found.iter().zip(mistakes) {
                assert_eq!(found.at, at, "{text}");
                assert!(found.to_string().contains(message), "{text}: {found}");
            }
        }
    }
}
