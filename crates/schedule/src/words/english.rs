//! English grammar shared by descriptions and warnings: lists, ordinals and durations.

use crate::cron::{distance, runs};
use crate::span::Span;

/// Longer lists are described by their step, if they have one.
pub(super) const LIST_MAX: usize = 6;

const DAY_MICROS: u64 = 86_400_000_000;
const UNITS: [(u64, &str); 4] =
    [(DAY_MICROS, "day"), (3_600_000_000, "hour"), (60_000_000, "minute"), (1_000_000, "second")];

/// `a`, `a and b`, `a, b and c`; `word` replaces `and`.
pub(crate) fn joined(parts: &[String], word: &str) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [rest @ .., last] => format!("{} {word} {last}", rest.join(", ")),
    }
}

/// Values by name; three or more consecutive values are described as a range.
pub(super) fn named_runs(values: &[u32], name: impl Fn(u32) -> String) -> Vec<String> {
    let describe = |(first, last): (u32, u32)| match last - first {
        0 => vec![name(first)],
        1 => vec![name(first), name(last)],
        _ => vec![format!("{} through {}", name(first), name(last))],
    };
    runs(values).into_iter().flat_map(describe).collect()
}

/// `every 2nd year from 1970 through 2100`, if there are many values with a constant step.
pub(super) fn every_nth(values: &[u32], unit: &str, name: impl Fn(u32) -> String) -> Option<String> {
    let step = distance(values).filter(|step| *step > 1 && values.len() > LIST_MAX)?;
    let (first, last) = (name(values[0]), name(values[values.len() - 1]));
    Some(format!("every {} {unit} from {first} through {last}", ordinal(step)))
}

/// `unit 5`, `units 1, 2 and 5 through 9`.
pub(super) fn counted(unit: &str, values: &[u32], name: impl Fn(u32) -> String) -> String {
    let plural = if values.len() == 1 { "" } else { "s" };
    format!("{unit}{plural} {}", joined(&named_runs(values, name), "and"))
}

/// `1st`, `22nd`, `13th`.
pub(crate) fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// `1 hour 30 minutes`.
pub(super) fn long_span(span: Span) -> String {
    let mut left = span.micros();
    let mut parts = Vec::new();
    for (each, name) in UNITS {
        match left / each {
            0 => {}
            1 => parts.push(format!("1 {name}")),
            count => parts.push(format!("{count} {name}s")),
        }
        left %= each;
    }
    // Fractions of a second are rare, and their short form is clear enough.
    if left > 0 || parts.is_empty() { span.to_string() } else { parts.join(" ") }
}

/// `every hour`, `every 15 minutes`.
pub(super) fn every_span(span: Span) -> String {
    match UNITS.iter().find(|(each, _)| *each == span.micros()) {
        // A calendar day can be shorter or longer.
        Some((DAY_MICROS, _)) => "every 24 hours".to_owned(),
        Some((_, name)) => format!("every {name}"),
        None => format!("every {}", long_span(span)),
    }
}
