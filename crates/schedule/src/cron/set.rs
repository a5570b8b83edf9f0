//! The set of values of one cron field: its ranges and steps, and its shortest text. Both dialects print from here; the
//! description in English and lint use it too.

use std::fmt::Write;

use super::bits::{YEAR_MAX, YEAR_MIN};

/// The valid values of a field and their names.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldKind {
    /// The name used in messages.
    pub(super) name: &'static str,
    pub(super) min: u32,
    pub(super) max: u32,
    /// The largest number that may be written; 7 for weekdays, which is Sunday as well.
    pub(super) value_max: u32,
    /// Whether `*` is allowed for all values.
    pub(super) star: bool,
    /// Names of values from `min` on; empty if they have none.
    pub(super) names: &'static [&'static str],
}

impl FieldKind {
    /// Years, which have the same syntax in both dialects.
    pub(super) const YEAR: Self = Self {
        name: "year",
        min: YEAR_MIN.cast_unsigned(),
        max: YEAR_MAX.cast_unsigned(),
        value_max: YEAR_MAX.cast_unsigned(),
        star: true,
        names: &[],
    };

    /// All values of the field.
    pub(super) fn all(self) -> u64 {
        stepped(self.min, self.max, 1)
    }

    /// The value of a name or of its first three letters.
    pub(super) fn named(self, word: &str) -> Option<u32> {
        let index = self.names.iter().position(|name| {
            word.eq_ignore_ascii_case(name) || (word.len() == 3 && word.eq_ignore_ascii_case(&name[..3]))
        })?;
        u32::try_from(index).ok().map(|index| self.min + index)
    }

    /// Formats a value like `other` was written: as a name or as a number.
    pub(super) fn written_like(self, value: u32, other: &str) -> String {
        let by_name = other.starts_with(|c: char| c.is_ascii_alphabetic());
        let name = self.names.get((value - self.min) as usize).filter(|_| by_name);
        name.map_or_else(|| value.to_string(), |name| name[..3].to_lowercase())
    }

    /// The allowed values, for messages.
    pub(super) fn choices(self) -> String {
        let name = self.names.first().map(|name| format!(", a name such as {}", &name[..3])).unwrap_or_default();
        let star = if self.star { ", or *" } else { "" };
        format!("a number from {}{name}{star}", self.range())
    }

    /// `0–59`, for messages.
    pub(super) fn range(self) -> String {
        format!("{}–{}", self.min, self.value_max)
    }
}

/// `first`, `first + step`, … up to `last`.
pub(super) fn stepped(first: u32, last: u32, step: u32) -> u64 {
    let mut bits = 0;
    let mut value = first;
    while value <= last {
        bits |= 1 << value;
        value += step.max(1);
    }
    bits
}

/// Values of a set in order.
pub(crate) fn values(bits: u64) -> Vec<u32> {
    (0..64).filter(|value| bits >> value & 1 == 1).collect()
}

/// Groups consecutive values: the first and the last value of each run.
pub(crate) fn runs(values: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *value => *last = *value,
            _ => runs.push((*value, *value)),
        }
    }
    runs
}

/// The common distance between neighbours; `None` for fewer than two values or unequal distances.
pub(crate) fn distance(values: &[u32]) -> Option<u32> {
    let distance = values.get(1)? - values[0];
    values.windows(2).all(|pair| pair[1] - pair[0] == distance).then_some(distance)
}

/// Weekdays as bits with Monday first; cron numbers them from Sunday.
pub(crate) fn monday_first(weekdays: u8) -> u64 {
    u64::from((weekdays >> 1 | weekdays << 6) & 0x7f)
}

/// The shortest usual text of a set: `*` for all values, `*/n` if it matches and `star` allows it, otherwise ranges and
/// lists.
pub(super) fn text(bits: u64, kind: FieldKind, star: bool) -> String {
    if bits == kind.all() && star {
        return "*".to_owned();
    }
    list_text(&values(bits), kind.min, kind.max, star)
}

/// Like `text`, for values that do not fit into 64 bits, such as years.
pub(super) fn list_text(values: &[u32], min: u32, max: u32, star: bool) -> String {
    if let Some(step) = even_step(values) {
        let (first, last) = (values[0], values[values.len() - 1]);
        let whole = first == min && last + step > max && star;
        return if whole { format!("*/{step}") } else { format!("{first}-{last}/{step}") };
    }
    let mut text = String::new();
    for (first, last) in runs(values) {
        let separator = if text.is_empty() { "" } else { "," };
        let _ = match last - first {
            0 => write!(text, "{separator}{first}"),
            1 => write!(text, "{separator}{first},{last}"),
            _ => write!(text, "{separator}{first}-{last}"),
        };
    }
    text
}

/// The step to print as `/n`: at least three values, and a step above one.
fn even_step(values: &[u32]) -> Option<u32> {
    distance(values).filter(|step| values.len() >= 3 && *step > 1)
}
