//! `H` in a cron field: a value derived from the job's id, so that a thousand daily jobs do not all start at the same
//! time.

use super::item::{self, CronToken};
use super::set::{self, FieldKind};
use crate::hash::StableHash;
use crate::text::TextError;

/// Hash seeds of the fields, from seconds to weekdays.
///
/// Invariant: these texts never change, because the times of existing jobs depend on them.
const SEEDS: [&str; 6] = ["second", "minute", "hour", "day of month", "month", "day of week"];
/// The last day that every month has.
const DAY_ALWAYS: u8 = 28;

/// `H`, `H/step`, `H(first-last)` or `H(first-last)/step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HashedField {
    first: u8,
    last: u8,
    /// Zero for a single value.
    step: u8,
}

impl HashedField {
    /// Parses a field that begins with `H`; `None` if it does not.
    pub(super) fn parse(piece: CronToken<'_>, kind: FieldKind) -> Result<Option<Self>, TextError> {
        let text = piece.text;
        if !text.starts_with(['H', 'h']) {
            return Ok(None);
        }
        let mut hashed = Self::over(kind);
        let mut at = 1;
        if text[at..].starts_with('(') {
            let close = text.find(')').ok_or_else(|| piece.error("expected `)`").hint("write H(0-29)"))?;
            let inside = piece.part(at + 1, close);
            let item = item::parse(inside, kind, |_, _| kind.max)?;
            if item.first > item.last {
                return Err(item::reversed(inside, kind, item));
            }
            if item.step != 1 || item.star {
                return Err(inside.error("expected a range such as 0-29"));
            }
            (hashed.first, hashed.last) = (item.first as u8, item.last as u8);
            at = close + 1;
        }
        if text[at..].starts_with('/') {
            let most = u32::from(hashed.last - hashed.first) + 1;
            let steps = FieldKind { name: "a step", min: 1, max: most, value_max: most, star: false, names: &[] };
            hashed.step = item::value(piece.part(at + 1, text.len()), steps)? as u8;
            at = text.len();
        }
        if at < text.len() {
            let rest = piece.part(at, text.len());
            return Err(rest.error("expected nothing more after `H`").hint("write H, H/15 or H(0-29)"));
        }
        Ok(Some(hashed))
    }

    /// The values for a job. `field` is the index of the field; seconds are 0.
    pub(super) fn values(self, job: &str, field: usize) -> u64 {
        let mut hash = StableHash::new();
        hash.text(job);
        hash.text(SEEDS[field]);
        let choices = if self.step == 0 { self.last - self.first + 1 } else { self.step };
        let first = u32::from(self.first) + (hash.finish() % u64::from(choices)) as u32;
        if self.step == 0 { 1 << first } else { set::stepped(first, u32::from(self.last), u32::from(self.step)) }
    }

    /// Whether it is a step over the whole field, like `*/n`.
    pub(super) fn is_step_over(self, kind: FieldKind) -> bool {
        self.step != 0 && Self { step: 0, ..self } == Self::over(kind)
    }

    pub(super) fn text(self, kind: FieldKind) -> String {
        let whole = Self { step: 0, ..self } == Self::over(kind);
        let range = if whole { String::new() } else { format!("({}-{})", self.first, self.last) };
        let step = if self.step == 0 { String::new() } else { format!("/{}", self.step) };
        format!("H{range}{step}")
    }

    /// `H` without range and step.
    fn over(kind: FieldKind) -> Self {
        let last = (kind.max as u8).min(if kind.max == 31 { DAY_ALWAYS } else { u8::MAX });
        Self { first: kind.min as u8, last, step: 0 }
    }
}
