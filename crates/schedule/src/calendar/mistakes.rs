//! The mistakes of one file, in order, up to a limit: a file of garbage must not become a list of
//! garbage.

use crate::text::TextError;

/// No calendar file is longer, in bytes.
pub(super) const FILE_MAX: usize = 4 * 1024 * 1024;

/// No more mistakes than this are kept of one file.
const MISTAKES_MAX: usize = 100;

/// Mistakes found so far.
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

    /// Whether reading on is pointless.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MISTAKES_MAX
    }

    /// The value, if there was no mistake; else the mistakes in the order of the file.
    pub(super) fn or<T>(mut self, value: T) -> Result<T, Vec<TextError>> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort_by_key(|mistake| mistake.at.start);
        Err(self.found)
    }
}

/// Refuses a file that is too long to be read.
pub(super) fn check_len(text: &str) -> Result<(), Vec<TextError>> {
    if text.len() > FILE_MAX {
        let message = format!("a calendar file has at most {} MiB, this one has {} bytes", FILE_MAX >> 20, text.len());
        return Err(vec![TextError::new(0..0, message)]);
    }
    Ok(())
}
