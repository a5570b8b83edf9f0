//! An error in a text with its position. Every parser of this crate returns it, so that the caller can point at the
//! character in the file.

use std::fmt;
use std::ops::Range;

/// Why a text could not be parsed: where, what was expected, and a suggestion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// Byte range in the parsed text.
    pub at: Range<usize>,
    /// What is wrong and what was expected.
    pub message: String,
    /// A suggested fix.
    pub hint: Option<String>,
}

impl TextError {
    pub fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), hint: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Moves the error by `by` bytes, for a text that is part of a longer one.
    #[must_use]
    pub fn shifted(mut self, by: usize) -> Self {
        self.at = self.at.start + by..self.at.end + by;
        self
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TextError {}

/// Serializes a type as text: what `Display` writes and `parse` reads.
#[macro_export]
macro_rules! stored_as_text {
    ($name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// The error for a text that is empty or is not what was expected.
pub(crate) fn not_a(text: &str, what: &str) -> TextError {
    let message = match text.trim() {
        "" => format!("expected {what}"),
        _ => format!("`{}` is not {what}", shortened(text)),
    };
    TextError::new(0..text.len(), message)
}

/// At most 40 characters of a text, for messages that quote input.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The candidate most similar to `word`, if one is close enough.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.chars().count() > 40 {
        return None;
    }
    let word = word.to_lowercase();
    let allowed = 1 + word.chars().count() / 4;
    candidates
        .into_iter()
        .map(|candidate| (edits(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance in which a transposition counts as one edit.
fn edits(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let width = b.len() + 1;
    let mut cost = vec![0; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            cost[i * width + j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = usize::from(a[i - 1] != b[j - 1]);
                let mut best = (cost[(i - 1) * width + j] + 1)
                    .min(cost[i * width + j - 1] + 1)
                    .min(cost[(i - 1) * width + j - 1] + change);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(cost[(i - 2) * width + j - 2] + 1);
                }
                best
            };
        }
    }
    cost[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meant_words() {
        let keys = ["schedule", "timezone", "program", "on"];
        assert_eq!(did_you_mean("shedule", keys), Some("schedule"));
        assert_eq!(did_you_mean("timezoen", keys), Some("timezone"));
        assert_eq!(did_you_mean("PROGRAM", keys), Some("program"));
        assert_eq!(did_you_mean("zebra", keys), None);
    }
}
