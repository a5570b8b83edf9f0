//! An error in a text with its position. Every parser of this crate returns it, so that the caller can point at the
//! character in the file.

use std::borrow::Cow;
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

/// Whether a character cannot be seen, or changes how the text around it is shown: marks of writing direction, characters
/// without a width, line separators, and code points that are not characters. Control characters are not among them.
pub fn is_deceptive(sign: char) -> bool {
    let code = u32::from(sign);
    matches!(
        sign,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    ) || code & 0xfffe == 0xfffe
}

/// A text on one line in which every character can be seen: control characters and deceptive ones are escaped, as in
/// `\n` or `\u{1b}`. So text of others can neither control a terminal nor look like a line of its own.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |sign: char| sign.is_control() || is_deceptive(sign);
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        match sign {
            '\0' => shown.push_str("\\0"),
            sign if sign.is_control() => shown.extend(sign.escape_default()),
            sign if is_deceptive(sign) => shown.extend(sign.escape_unicode()),
            sign => shown.push(sign),
        }
    }
    Cow::Owned(shown)
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
    fn hidden_characters_are_shown_escaped() {
        for (text, expected) in [
            ("größe ✓ 👩 \\ \"", "größe ✓ 👩 \\ \""),
            ("a\nb\r\tc\0", "a\\nb\\r\\tc\\0"),
            ("\u{1b}]0;x\u{7}\u{9b}31m\u{7f}", "\\u{1b}]0;x\\u{7}\\u{9b}31m\\u{7f}"),
            ("in\u{202e}voice\u{2066}\u{200b}\u{feff}\u{2028}", "in\\u{202e}voice\\u{2066}\\u{200b}\\u{feff}\\u{2028}"),
            ("\u{ffff}\u{1fffe}\u{e0041}", "\\u{ffff}\\u{1fffe}\\u{e0041}"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn meant_words() {
        let keys = ["schedule", "timezone", "program", "on"];
        assert_eq!(did_you_mean("shedule", keys), Some("schedule"));
        assert_eq!(did_you_mean("timezoen", keys), Some("timezone"));
        assert_eq!(did_you_mean("PROGRAM", keys), Some("program"));
        assert_eq!(did_you_mean("zebra", keys), None);
    }
}
