//! Cron expressions of five to seven fields: `min hour dom mon dow`; six fields add the year; seven put the seconds
//! first. If both day fields are restricted, either one is enough.

use std::fmt;

use super::bits::{CronBits, NTH_LAST, NTH_PER_WEEKDAY, YearSet};
use super::hashed::HashedField;
use super::item::{self, CronItem, CronToken};
use super::set::{self, FieldKind};
use crate::civil::{MONTHS, WEEKDAYS};
use crate::text::TextError;

/// Maximum length of an expression in bytes; enough to list every second and minute.
const TEXT_MAX: usize = 2048;

const SECOND: FieldKind = FieldKind { name: "second", min: 0, max: 59, value_max: 59, star: true, names: &[] };
const MINUTE: FieldKind = FieldKind { name: "minute", min: 0, max: 59, value_max: 59, star: true, names: &[] };
const HOUR: FieldKind = FieldKind { name: "hour", min: 0, max: 23, value_max: 23, star: true, names: &[] };
const DAY: FieldKind = FieldKind { name: "day of month", min: 1, max: 31, value_max: 31, star: true, names: &[] };
const MONTH: FieldKind = FieldKind { name: "month", min: 1, max: 12, value_max: 12, star: true, names: &MONTHS };
const WEEKDAY: FieldKind =
    FieldKind { name: "day of week", min: 0, max: 6, value_max: 7, star: true, names: &WEEKDAYS };
const YEAR: FieldKind = FieldKind::YEAR;

/// A cron expression as written. Fields written as `H` get their values from the job's id.
#[derive(Debug, Clone)]
pub struct CronExpr {
    /// All fields except the hashed ones, which are empty here.
    bits: CronBits,
    /// Seconds, minutes, hours, days, months and weekdays that are written as `H`.
    hashed: [Option<HashedField>; 6],
    /// Number of fields as written. Used by lint; ignored by `==`.
    fields: u8,
}

impl PartialEq for CronExpr {
    fn eq(&self, other: &Self) -> bool {
        (&self.bits, &self.hashed) == (&other.bits, &other.hashed)
    }
}

impl Eq for CronExpr {}

impl CronExpr {
    /// Parses an expression.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text.len() > TEXT_MAX {
            return Err(TextError::new(
                0..text.len(),
                format!("a cron expression can be at most {TEXT_MAX} bytes long"),
            ));
        }
        let pieces = fields_of(text);
        let skipped = match pieces.len() {
            5 | 6 => 1,
            7 => 0,
            _ => return Err(wrong_count(text, &pieces)),
        };
        let mut full = [CronToken { text: "*", at: 0 }; 7];
        full[0].text = "0";
        full[skipped..skipped + pieces.len()].copy_from_slice(&pieces);
        let fields = pieces.len() as u8;
        Self::from_fields(full, fields).map_err(|error| match &error.hint {
            _ if pieces[5..].iter().any(is_command) => error.hint(COMMAND_HINT),
            // Other cron implementations put the second first in six fields, so that is the likely mistake.
            None if fields == 6 => error.hint("six fields end in the year; with seconds there are seven"),
            _ => error,
        })
    }

    fn from_fields(pieces: [CronToken<'_>; 7], fields: u8) -> Result<Self, TextError> {
        let [second, minute, hour, day, month, weekday, year] = pieces;
        let mut expr = Self { bits: CronBits::EMPTY, hashed: [None; 6], fields };
        expr.bits.seconds = expr.plain(0, second, SECOND)?.0;
        expr.bits.minutes = expr.plain(1, minute, MINUTE)?.0;
        let (hours, hour_star) = expr.plain(2, hour, HOUR)?;
        expr.bits.hours = hours as u32;
        let hashed_step = expr.hashed[2].is_some_and(|hashed| hashed.is_step_over(HOUR));
        expr.bits.traits.every_hour = hour_star || hashed_step;
        expr.days(day)?;
        expr.bits.months = expr.plain(4, month, MONTH)?.0 as u16;
        expr.weekdays(weekday)?;
        expr.years(year)?;
        Ok(expr)
    }

    /// The rule for a job, whose id determines the value of `H`.
    pub(crate) fn resolve(&self, job: &str) -> CronBits {
        let mut bits = self.bits;
        for (index, hashed) in self.hashed.into_iter().enumerate() {
            let Some(hashed) = hashed else { continue };
            let values = hashed.values(job, index);
            match index {
                0 => bits.seconds = values,
                1 => bits.minutes = values,
                2 => bits.hours = values as u32,
                3 => bits.days = values as u32,
                4 => bits.months = values as u16,
                // 7 is Sunday as well.
                _ => bits.weekdays = (values | values >> 7) as u8 & 0x7f,
            }
        }
        bits
    }

    /// Whether it has fields that depend on the job's id.
    pub fn depends_on_job(&self) -> bool {
        self.hashed.iter().any(Option::is_some)
    }

    /// Whether it does not restrict the year.
    pub fn every_year(&self) -> bool {
        self.bits.years == YearSet::all()
    }

    /// Number of fields as written.
    pub fn field_count(&self) -> u8 {
        self.fields
    }

    /// Parses a field without special entries. Returns its values and whether the whole field is `*` or `*/n`.
    fn plain(&mut self, index: usize, piece: CronToken<'_>, kind: FieldKind) -> Result<(u64, bool), TextError> {
        if let Some(hashed) = HashedField::parse(piece, kind)? {
            self.hashed[index] = Some(hashed);
            return Ok((0, false));
        }
        let mut bits = 0;
        let mut stars = 0;
        let mut entries = 0;
        for entry in piece.entries() {
            let item = parse_item(entry, kind)?;
            bits |= set::stepped(item.first, item.last, item.step);
            stars += u32::from(item.star);
            entries += 1;
        }
        Ok((bits, stars == 1 && entries == 1))
    }

    fn days(&mut self, piece: CronToken<'_>) -> Result<(), TextError> {
        self.bits.traits.days_restricted = !matches!(piece.text, "*" | "?");
        if let Some(hashed) = HashedField::parse(piece, DAY)? {
            self.hashed[3] = Some(hashed);
            return Ok(());
        }
        for entry in piece.entries() {
            let upper = entry.text.to_ascii_uppercase();
            if upper == "L" {
                self.bits.from_end |= 1;
            } else if upper == "LW" || upper == "WL" {
                self.bits.traits.last_working_day = true;
            } else if upper.starts_with("L-") {
                let back = CronToken { text: &entry.text[2..], at: entry.at + 2 };
                let kind =
                    FieldKind { name: "days before the last", min: 1, max: 30, value_max: 30, star: false, names: &[] };
                self.bits.from_end |= 1 << item::value(back, kind)?;
            } else if upper.len() > 1 && upper.ends_with('W') {
                self.bits.nearest |= 1 << item::value(entry.part(0, entry.text.len() - 1), DAY)?;
            } else {
                let item = parse_item(entry, DAY)?;
                self.bits.days |= set::stepped(item.first, item.last, item.step) as u32;
                // A `*` in a list means that the field is not restricted.
                self.bits.traits.days_restricted &= !(item.star && item.step == 1);
            }
        }
        if !self.bits.traits.days_restricted {
            // Clear the other entries, which have no effect then, so that equal rules compare equal.
            (self.bits.nearest, self.bits.from_end, self.bits.days) = (0, 0, DAY.all() as u32);
            self.bits.traits.last_working_day = false;
        }
        Ok(())
    }

    fn weekdays(&mut self, piece: CronToken<'_>) -> Result<(), TextError> {
        self.bits.traits.weekdays_restricted = !matches!(piece.text, "*" | "?");
        if let Some(hashed) = HashedField::parse(piece, WEEKDAY)? {
            self.hashed[5] = Some(hashed);
            return Ok(());
        }
        for entry in piece.entries() {
            if let Some(hash) = entry.text.find('#') {
                let weekday = item::value(entry.part(0, hash), WEEKDAY)? % 7;
                let kind =
                    FieldKind { name: "the number after `#`", min: 1, max: 5, value_max: 5, star: false, names: &[] };
                let nth = item::value(entry.part(hash + 1, entry.text.len()), kind)?;
                self.bits.nth |= 1 << (weekday * NTH_PER_WEEKDAY + nth - 1);
            } else if entry.text.eq_ignore_ascii_case("L") {
                return Err(entry
                    .error("`L` alone is not a day of week")
                    .hint("write 5L for the last Friday, or L in the day-of-month field for the last day"));
            } else if let Some(weekday) = last_weekday(entry) {
                self.bits.nth |= 1 << (weekday? % 7 * NTH_PER_WEEKDAY + NTH_LAST);
            } else {
                let item = parse_item(entry, WEEKDAY)?;
                self.bits.weekdays |= week(item);
                self.bits.traits.weekdays_restricted &= !(item.star && item.step == 1);
            }
        }
        if !self.bits.traits.weekdays_restricted {
            (self.bits.nth, self.bits.weekdays) = (0, WEEKDAY.all() as u8);
        }
        Ok(())
    }

    fn years(&mut self, piece: CronToken<'_>) -> Result<(), TextError> {
        self.bits.years = YearSet::NONE;
        for entry in piece.entries() {
            let item = parse_item(entry, YEAR)?;
            for year in (item.first..=item.last).step_by(item.step as usize) {
                self.bits.years.insert(year.cast_signed());
            }
        }
        Ok(())
    }
}

/// Blank-separated fields with their offsets.
fn fields_of(text: &str) -> Vec<CronToken<'_>> {
    text.split_whitespace()
        .map(|field| CronToken { text: field, at: field.as_ptr() as usize - text.as_ptr() as usize })
        .collect()
}

const COMMAND_HINT: &str = "write only the schedule; the command belongs in the job's `program`";

/// Whether a field looks like the rest of a crontab line: a command, a user or a comment.
fn is_command(piece: &CronToken<'_>) -> bool {
    let word = piece.text.len() > 1 && piece.text.bytes().all(|byte| byte.is_ascii_lowercase());
    word || piece.text.starts_with(['/', '#', '.', '~', '[', '-'])
}

fn wrong_count(text: &str, pieces: &[CronToken<'_>]) -> TextError {
    let at = pieces.get(7).map_or(0..text.len(), |extra| extra.at..text.len());
    let count = pieces.len();
    let fields = if count == 1 { "field" } else { "fields" };
    let error = TextError::new(at, format!("a cron expression has 5, 6 or 7 fields, this has {count} {fields}"));
    if pieces.iter().skip(5).any(is_command) {
        return error.hint(COMMAND_HINT);
    }
    error.hint(
        "minute hour day-of-month month day-of-week; a sixth field is the year; with seven the first is the second",
    )
}

fn parse_item(entry: CronToken<'_>, kind: FieldKind) -> Result<CronItem, TextError> {
    let item = item::parse(entry, kind, |_, _| kind.max).map_err(|error| match misplaced(entry.text, kind) {
        Some(hint) => error.hint(hint),
        None => error,
    })?;
    let wraps = kind.name == WEEKDAY.name;
    if item.first > item.last && !wraps {
        return Err(item::reversed(entry, kind, item));
    }
    Ok(item)
}

/// The hint for an entry that would be valid in another field.
fn misplaced(text: &str, kind: FieldKind) -> Option<&'static str> {
    let upper = text.to_ascii_uppercase();
    let number = upper.trim_end_matches(['L', 'W']).parse::<u8>().is_ok();
    match kind.name {
        "year" if upper.starts_with('H') => Some("the year cannot be given as H"),
        _ if upper.starts_with('H') => Some("H must be the only entry of its field"),
        "day of month" if number && upper.ends_with('L') => {
            Some("5L, the last Friday, belongs in the day-of-week field")
        }
        "day of month" if upper == "W" => Some("write 15W for the working day nearest to the 15th"),
        "day of week" if upper.ends_with('W') => Some("15W and LW belong in the day-of-month field"),
        _ => None,
    }
}

/// The weekdays of an entry. A range may wrap around the end of the week, and 7 is Sunday.
fn week(item: CronItem) -> u8 {
    let last = if item.first > item.last { item.last + 7 } else { item.last };
    let days = set::stepped(item.first, last, item.step);
    (days | days >> 7) as u8 & 0x7f
}

/// The weekday of `5L` or `friL`; `None` if the entry does not have this form.
fn last_weekday(entry: CronToken<'_>) -> Option<Result<u32, TextError>> {
    let len = entry.text.len();
    let is_last = len > 1 && entry.text.is_char_boundary(len - 1) && entry.text[len - 1..].eq_ignore_ascii_case("l");
    // No name of a weekday ends in `l`, so a trailing one is always the marker.
    is_last.then(|| item::value(entry.part(0, len - 1), WEEKDAY))
}

impl fmt::Display for CronExpr {
    /// The canonical text: the fewest fields, each as its shortest usual text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = &self.bits;
        let plain = |index: usize, values: u64, kind: FieldKind| match self.hashed[index] {
            Some(hashed) => hashed.text(kind),
            None => set::text(values, kind, true),
        };
        let hour_values = set::values(u64::from(bits.hours));
        let hour = match (self.hashed[2], bits.traits.every_hour, hour_values.as_slice()) {
            (Some(hashed), ..) => hashed.text(HOUR),
            (None, true, [_, second]) => format!("*/{second}"),
            (None, star, _) => set::text(u64::from(bits.hours), HOUR, star),
        };
        let month = plain(4, u64::from(bits.months), MONTH);
        let years: Vec<u32> = (YEAR.min..=YEAR.max).filter(|year| bits.years.contains(year.cast_signed())).collect();
        let every_year = bits.years == YearSet::all();
        let on_the_minute = bits.seconds == 1 && self.hashed[0].is_none();
        if !on_the_minute {
            write!(f, "{} ", plain(0, bits.seconds, SECOND))?;
        }
        let minute = plain(1, bits.minutes, MINUTE);
        write!(f, "{minute} {hour} {} {month} {}", self.days_text(), self.weekdays_text())?;
        match (every_year, on_the_minute) {
            (true, true) => Ok(()),
            (true, false) => f.write_str(" *"),
            (false, _) => write!(f, " {}", set::list_text(&years, YEAR.min, YEAR.max, false)),
        }
    }
}

impl CronExpr {
    fn days_text(&self) -> String {
        if let Some(hashed) = self.hashed[3] {
            return hashed.text(DAY);
        }
        if !self.bits.traits.days_restricted {
            return "*".to_owned();
        }
        let mut entries = Vec::new();
        let days = u64::from(self.bits.days);
        if days == DAY.all() {
            entries.push("1-31".to_owned());
        } else if days != 0 {
            entries.push(set::text(days, DAY, true));
        }
        entries.extend(set::values(u64::from(self.bits.nearest)).iter().map(|day| format!("{day}W")));
        for back in set::values(u64::from(self.bits.from_end)) {
            entries.push(if back == 0 { "L".to_owned() } else { format!("L-{back}") });
        }
        if self.bits.traits.last_working_day {
            entries.push("LW".to_owned());
        }
        entries.join(",")
    }

    fn weekdays_text(&self) -> String {
        if let Some(hashed) = self.hashed[5] {
            return hashed.text(WEEKDAY);
        }
        if !self.bits.traits.weekdays_restricted {
            return "*".to_owned();
        }
        let mut entries = Vec::new();
        let weekdays = u64::from(self.bits.weekdays);
        if weekdays == WEEKDAY.all() {
            entries.push("0-6".to_owned());
        } else if weekdays != 0 {
            entries.push(set::text(weekdays, WEEKDAY, true));
        }
        for bit in set::values(self.bits.nth) {
            let weekday = bit / NTH_PER_WEEKDAY;
            entries.push(match bit % NTH_PER_WEEKDAY {
                NTH_LAST => format!("{weekday}L"),
                nth => format!("{weekday}#{}", nth + 1),
            });
        }
        entries.join(",")
    }
}
