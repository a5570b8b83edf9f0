//! The errors of one file, in order and limited in number, so that a binary file does not produce thousands of
//! messages.

use crate::text::TextError;

/// Maximum size of a calendar file in bytes.
pub(super) const FILE_MAX: usize = 4 * 1024 * 1024;

/// Maximum number of errors that are kept for one file.
const MISTAKES_MAX: usize = 100;

/// Errors found so far.
#[derive(Debug, Default)]
pub(super) struct CalendarMistakes {
    found: Vec<TextError>,
}

impl CalendarMistakes {
    pub(super) fn push(&mut self, mistake: TextError) {
        if !self.is_full() {
            self.found.push(mistake);
        }
    }

    pub(super) fn append(&mut self, others: Self) {
        for mistake in others.found {
            self.push(mistake);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether the limit is reached, so that parsing can stop.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MISTAKES_MAX
    }

    /// The value if there were no errors; otherwise the errors in file order.
    pub(super) fn or<T>(mut self, value: T) -> Result<T, Vec<TextError>> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort_by_key(|mistake| mistake.at.start);
        Err(self.found)
    }
}

/// Rejects a file that is larger than `FILE_MAX`.
pub(super) fn check_len(text: &str) -> Result<(), Vec<TextError>> {
    if text.len() > FILE_MAX {
        let message = format!("a calendar file has at most {} MiB, this one has {} bytes", FILE_MAX >> 20, text.len());
        return Err(vec![TextError::new(0..0, message)]);
    }
    Ok(())
}
