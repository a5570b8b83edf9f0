//! A mistake in a job file: its place, a message and a hint. Every reader of job files returns mistakes; only `render`
//! turns them into text.

use std::ops::Range;

use cronhold_core::job::Feature;

/// Whether the file is invalid or the version lacks a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MistakeKind {
    /// The file is invalid.
    #[default]
    Invalid,
    /// The file is valid, but uses a feature that this version does not support.
    Unsupported,
}

/// A mistake in a job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub kind: MistakeKind,
    /// Name of the file, as the caller of the reader gave it.
    pub file: String,
    /// Byte range in the file.
    pub at: Range<usize>,
    /// What is wrong and what was expected.
    pub message: String,
    /// What to write instead, if that is known.
    pub hint: Option<String>,
    /// Another place that is involved, with a label.
    pub related: Option<(Range<usize>, String)>,
}

impl Mistake {
    /// A mistake without a hint.
    pub fn new(file: impl Into<String>, at: Range<usize>, message: impl Into<String>) -> Self {
        let kind = MistakeKind::default();
        Self { kind, file: file.into(), at, message: message.into(), hint: None, related: None }
    }

    /// A feature that this version does not support, at the key that requires it.
    pub(crate) fn unsupported(file: impl Into<String>, at: Range<usize>, feature: Feature) -> Self {
        let mistake = Self::new(file, at, feature.message()).hint(feature.hint());
        Self { kind: MistakeKind::Unsupported, ..mistake }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds another place that is involved.
    #[must_use]
    pub fn related(mut self, at: Range<usize>, label: impl Into<String>) -> Self {
        self.related = Some((at, label.into()));
        self
    }
}

/// Line and column of a byte offset, both counted from 1, columns in characters. An offset past the end counts as the end.
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters() {
        let text = "a: ä\nbö: x\n";
        for (offset, expected) in [(0, (1, 1)), (3, (1, 4)), (4, (1, 4)), (6, (2, 1)), (9, (2, 3)), (99, (3, 1))] {
            assert_eq!(line_column(text, offset), expected, "{offset}");
        }
    }
}
