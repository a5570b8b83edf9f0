//! One entry of a cron field's list: `*`, `5`, `5-20`, `*/2`, `5/2`, `5-20/2`. Both dialects share this syntax; they
//! differ in the maximum step and in the numbering of weekdays.

use super::set::FieldKind;
use crate::text::{TextError, did_you_mean, shortened};

/// A parsed entry with its range and step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CronItem {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) step: u32,
    /// Whether it began with `*` or `?`.
    pub(super) star: bool,
}

/// A part of an expression with its offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct CronToken<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> CronToken<'a> {
    /// The part from byte `start` to byte `end`.
    pub(super) fn part(self, start: usize, end: usize) -> Self {
        Self { text: &self.text[start..end], at: self.at + start }
    }

    /// Its parts between commas.
    pub(super) fn entries(self) -> impl Iterator<Item = CronToken<'a>> {
        let mut at = self.at;
        self.text.split(',').map(move |text| {
            let piece = CronToken { text, at };
            at += text.len() + 1;
            piece
        })
    }

    /// An error at the position of this token.
    pub(super) fn error(self, message: impl Into<String>) -> TextError {
        TextError::new(self.at..self.at + self.text.len(), message)
    }
}

/// Parses an entry. `step_max` returns the largest allowed step for a range.
pub(super) fn parse(
    piece: CronToken<'_>,
    kind: FieldKind,
    step_max: impl Fn(u32, u32) -> u32,
) -> Result<CronItem, TextError> {
    let (base, step) = match piece.text.find('/') {
        Some(slash) => (piece.part(0, slash), Some(piece.part(slash + 1, piece.text.len()))),
        None => (piece, None),
    };
    let star = matches!(base.text, "*" | "?");
    let (first, last) = if star {
        (kind.min, kind.max)
    } else if let Some(dash) = base.text.find('-') {
        (value(base.part(0, dash), kind)?, value(base.part(dash + 1, base.text.len()), kind)?)
    } else {
        let first = value(base, kind)?;
        (first, if step.is_some() { kind.max.max(first) } else { first })
    };
    let step = match step {
        Some(step) => step_value(step, kind, step_max(first, last))?,
        None => 1,
    };
    Ok(CronItem { first, last, step, star })
}

/// The error for a range whose end is before its start.
pub(super) fn reversed(piece: CronToken<'_>, kind: FieldKind, item: CronItem) -> TextError {
    let range = piece.text.split('/').next().unwrap_or_default();
    let (first, last) = range.split_once('-').unwrap_or((range, ""));
    let upper = kind.written_like(kind.max, first);
    let lower = match kind.written_like(kind.min, last) {
        lower if item.last == kind.min => lower,
        lower => format!("{lower}-{last}"),
    };
    let error = piece.error(format!("the range {} is reversed", shortened(range)));
    error.hint(format!("write {first}-{upper},{lower} to go over the end"))
}

/// Parses one value, a number or a name.
pub(super) fn value(piece: CronToken<'_>, kind: FieldKind) -> Result<u32, TextError> {
    let text = piece.text;
    if text.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = text.parse::<u32>().ok().filter(|number| *number >= kind.min && *number <= kind.value_max);
        return number
            .ok_or_else(|| piece.error(format!("{} must be {}, not {}", kind.name, kind.range(), shortened(text))));
    }
    kind.named(text).ok_or_else(|| {
        let error = piece.error(if text.is_empty() {
            format!("expected a value for {} here", kind.name)
        } else {
            format!("`{}` is not a value for {}", shortened(text), kind.name)
        });
        let short_names = kind.names.iter().map(|name| &name[..3]);
        match did_you_mean(text, kind.names.iter().copied().chain(short_names)) {
            Some(meant) if !text.is_empty() => error.hint(format!("did you mean `{meant}`?")),
            _ => error.hint(kind.choices()),
        }
    })
}

fn step_value(piece: CronToken<'_>, kind: FieldKind, max: u32) -> Result<u32, TextError> {
    let digits = !piece.text.is_empty() && piece.text.bytes().all(|byte| byte.is_ascii_digit());
    let step = piece.text.parse::<u32>().ok().filter(|_| digits);
    match step {
        Some(step) if (1..=max).contains(&step) => Ok(step),
        Some(_) | None if digits => Err(piece
            .error(format!("a step for {} here must be 1–{max}, not {}", kind.name, shortened(piece.text)))
            .hint("`*/5` means every fifth value")),
        _ => Err(piece.error("expected a number after `/`").hint("`*/5` means every fifth value")),
    }
}
