//! The keeper's log: lines on its standard error, which the daemon that starts it redirects into a file.

use std::io::Write;

/// Writes a line. The keeper continues if the log cannot be written.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "keeper: {text}");
}
