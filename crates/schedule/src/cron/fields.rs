//! Named cron fields with APScheduler's rules: `{hour: 14, day: last}`. Monday is 0, all fields must match, and fields
//! less significant than the least significant one given default to their minimum.

use std::fmt;

use super::bits::{ALL_WEEKS, CronBits, NTH_LAST, NTH_PER_WEEKDAY, YearSet};
use super::item::{self, CronItem, CronToken};
use super::set::{self, FieldKind};
use crate::civil::MONTHS;
use crate::text::{TextError, did_you_mean, shortened};

/// Names of weekdays from Monday on.
const FROM_MONDAY: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
/// Ordinals of a weekday within its month.
const PLACES: [&str; 6] = ["1st", "2nd", "3rd", "4th", "5th", "last"];
/// Maximum length of a field's text in bytes.
const TEXT_MAX: usize = 1024;

/// The fields from most to least significant.
const KINDS: [FieldKind; 8] = [
    FieldKind::YEAR,
    FieldKind { name: "month", min: 1, max: 12, value_max: 12, star: true, names: &MONTHS },
    FieldKind { name: "day", min: 1, max: 31, value_max: 31, star: true, names: &[] },
    FieldKind { name: "week", min: 1, max: 53, value_max: 53, star: true, names: &[] },
    FieldKind { name: "day_of_week", min: 0, max: 6, value_max: 6, star: true, names: &FROM_MONDAY },
    FieldKind { name: "hour", min: 0, max: 23, value_max: 23, star: true, names: &[] },
    FieldKind { name: "minute", min: 0, max: 59, value_max: 59, star: true, names: &[] },
    FieldKind { name: "second", min: 0, max: 59, value_max: 59, star: true, names: &[] },
];
const YEAR: usize = 0;
const MONTH: usize = 1;
const DAY: usize = 2;
const WEEK: usize = 3;
const WEEKDAY: usize = 4;
const HOUR: usize = 5;
const MINUTE: usize = 6;

/// Named cron fields as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsExpr {
    bits: CronBits,
    /// Which fields were given, by their index.
    given: u8,
}

impl FieldsExpr {
    /// The names of all fields, from most to least significant.
    pub const NAMES: [&str; 8] = ["year", "month", "day", "week", "day_of_week", "hour", "minute", "second"];

    /// Parses pairs of field name and text. An error comes with the index of its field.
    pub fn parse(fields: &[(&str, &str)]) -> Result<Self, (usize, TextError)> {
        let mut texts: [Option<(usize, &str)>; 8] = [None; 8];
        for (position, (name, text)) in fields.iter().enumerate() {
            let index = field_index(name).map_err(|error| (position, error))?;
            if texts[index].is_some() {
                return Err((position, TextError::new(0..text.len(), format!("`{name}` is given twice"))));
            }
            texts[index] = Some((position, text));
        }
        let Some(least) = texts.iter().rposition(Option::is_some) else {
            return Err((0, TextError::new(0..0, "expected at least one field").hint(Self::NAMES.join(", "))));
        };
        let mut expr = Self { bits: CronBits::EMPTY, given: 0 };
        expr.bits.traits.both_must_match = true;
        for (index, given) in texts.into_iter().enumerate() {
            // Week and weekday have no sensible minimum, so they stay unrestricted.
            let always_free = matches!(index, YEAR | WEEK | WEEKDAY);
            let (position, text) = match given {
                Some(given) => given,
                None if index > least && !always_free => (0, KINDS[index].min_text()),
                None => (0, "*"),
            };
            expr.given |= u8::from(given.is_some()) << index;
            expr.field(index, text.trim()).map_err(|error| (position, error.shifted(leading_blanks(text))))?;
        }
        Ok(expr)
    }

    /// The rule as bit sets.
    pub(crate) fn resolve(&self) -> CronBits {
        self.bits
    }

    /// The fields that were given, with their canonical texts, from most to least significant.
    pub fn entries(&self) -> Vec<(&'static str, String)> {
        let given = (0..8).filter(|index| self.given >> index & 1 == 1);
        given.map(|index| (Self::NAMES[index], self.field_text(index))).collect()
    }

    fn field(&mut self, index: usize, text: &str) -> Result<(), TextError> {
        if text.len() > TEXT_MAX {
            return Err(TextError::new(0..text.len(), format!("a field can be at most {TEXT_MAX} bytes long")));
        }
        let kind = KINDS[index];
        let mut values = 0;
        let mut years = YearSet::NONE;
        let mut star = false;
        let mut entries = 0;
        for entry in (CronToken { text, at: 0 }).entries() {
            entries += 1;
            let entry = trimmed(entry);
            if index == DAY && self.special_day(entry)? {
                continue;
            }
            let item = parse_item(entry, kind)?;
            star |= item.star;
            if index == YEAR {
                (item.first..=item.last).step_by(item.step as usize).for_each(|year| years.insert(year.cast_signed()));
            } else {
                values |= set::stepped(item.first, item.last, item.step);
            }
        }
        let restricted = values != kind.all_or_none();
        match index {
            YEAR => self.bits.years = years,
            MONTH => self.bits.months = values as u16,
            DAY => {
                self.bits.days = values as u32;
                self.bits.traits.days_restricted = restricted;
                if !restricted {
                    // Clear the other entries, which have no effect then, so that equal rules compare equal.
                    (self.bits.nth, self.bits.from_end) = (0, 0);
                }
            }
            WEEK => self.bits.weeks = values,
            WEEKDAY => {
                self.bits.weekdays = sunday_first(values);
                self.bits.traits.weekdays_restricted = restricted;
            }
            HOUR => {
                self.bits.hours = values as u32;
                self.bits.traits.every_hour = star && entries == 1;
            }
            MINUTE => self.bits.minutes = values,
            _ => self.bits.seconds = values,
        }
        Ok(())
    }

    /// Parses `last`, `last fri` or `2nd wed`. Returns whether the entry had one of these forms.
    fn special_day(&mut self, entry: CronToken<'_>) -> Result<bool, TextError> {
        let mut words = entry.text.split_whitespace();
        let (Some(place), weekday, None) = (words.next(), words.next(), words.next()) else {
            return Ok(false);
        };
        let Some(nth) = PLACES.iter().position(|known| known.eq_ignore_ascii_case(place)) else {
            return match weekday {
                Some(_) => Err(entry
                    .error(format!("`{}` is not a place in a month", shortened(place)))
                    .hint("write 1st, 2nd, 3rd, 4th, 5th or last before a weekday")),
                None => Ok(false),
            };
        };
        let Some(weekday) = weekday else {
            if nth as u32 == NTH_LAST {
                self.bits.from_end |= 1;
                return Ok(true);
            }
            return Err(entry.error(format!("expected a weekday after `{place}`")).hint("such as 1st mon"));
        };
        let at = entry.text.len() - weekday.len();
        let monday_first = KINDS[WEEKDAY].named(weekday).ok_or_else(|| {
            let error = entry.part(at, entry.text.len()).error(format!("`{}` is not a weekday", shortened(weekday)));
            match did_you_mean(weekday, FROM_MONDAY) {
                Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                None => error.hint("such as mon or friday"),
            }
        })?;
        self.bits.nth |= 1 << ((monday_first + 1) % 7 * NTH_PER_WEEKDAY + nth as u32);
        Ok(true)
    }

    fn field_text(&self, index: usize) -> String {
        let bits = &self.bits;
        let kind = KINDS[index];
        match index {
            YEAR if bits.years == YearSet::all() => "*".to_owned(),
            YEAR => {
                let years: Vec<u32> = (kind.min..=kind.max).filter(|y| bits.years.contains(y.cast_signed())).collect();
                set::list_text(&years, kind.min, kind.max, true)
            }
            MONTH => set::text(u64::from(bits.months), kind, true),
            DAY => self.day_text(),
            WEEK if bits.weeks == ALL_WEEKS => "*".to_owned(),
            WEEK => set::text(bits.weeks, kind, true),
            WEEKDAY => set::text(set::monday_first(bits.weekdays), kind, true),
            HOUR => match set::values(u64::from(bits.hours)).as_slice() {
                [_, second] if bits.traits.every_hour => format!("*/{second}"),
                _ => set::text(u64::from(bits.hours), kind, bits.traits.every_hour),
            },
            MINUTE => set::text(bits.minutes, kind, true),
            _ => set::text(bits.seconds, kind, true),
        }
    }

    fn day_text(&self) -> String {
        let bits = &self.bits;
        let mut entries = Vec::new();
        if bits.days != 0 {
            entries.push(set::text(u64::from(bits.days), KINDS[DAY], true));
        }
        for bit in set::values(bits.nth) {
            let weekday = (bit / NTH_PER_WEEKDAY + 6) % 7;
            let place = PLACES[(bit % NTH_PER_WEEKDAY) as usize];
            entries.push(format!("{place} {}", FROM_MONDAY[weekday as usize][..3].to_lowercase()));
        }
        if bits.from_end != 0 {
            entries.push("last".to_owned());
        }
        entries.join(",")
    }
}

impl FieldKind {
    fn min_text(self) -> &'static str {
        if self.min == 0 { "0" } else { "1" }
    }

    /// All values as bits; 0 for years, which do not fit.
    fn all_or_none(self) -> u64 {
        if self.max < 64 { self.all() } else { 0 }
    }
}

fn field_index(name: &str) -> Result<usize, TextError> {
    FieldsExpr::NAMES.iter().position(|known| *known == name).ok_or_else(|| {
        let error = TextError::new(0..name.len(), format!("`{}` is not a cron field", shortened(name)));
        match did_you_mean(name, FieldsExpr::NAMES) {
            Some(meant) => error.hint(format!("did you mean `{meant}`?")),
            None => error.hint(FieldsExpr::NAMES.join(", ")),
        }
    })
}

fn parse_item(entry: CronToken<'_>, kind: FieldKind) -> Result<CronItem, TextError> {
    let item = item::parse(entry, kind, |first, last| last.saturating_sub(first).max(1))?;
    if item.first > item.last {
        return Err(item::reversed(entry, kind, item));
    }
    Ok(item)
}

fn trimmed(entry: CronToken<'_>) -> CronToken<'_> {
    let start = leading_blanks(entry.text);
    entry.part(start, start.max(entry.text.trim_end().len()))
}

fn leading_blanks(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Converts a mask that begins with Monday to one that begins with Sunday.
fn sunday_first(days: u64) -> u8 {
    ((days << 1 | days >> 6) & 0x7f) as u8
}

impl fmt::Display for FieldsExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, text)) in self.entries().into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{name}: {text}")?;
        }
        Ok(())
    }
}
