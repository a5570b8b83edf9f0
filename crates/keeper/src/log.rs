//! What the keeper says to its operator: lines on its standard error, which whoever starts it puts into a file.

use std::io::Write;

/// Writes a line. A log that cannot be written is no reason to leave programs alone.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "keeper: {text}");
}
