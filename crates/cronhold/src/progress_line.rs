//! A line on standard error that shows how far a command is. It is replaced in place, so it is shown only on a terminal.

use std::fmt;
use std::io::Write;

/// A progress bar with an optional text after it.
pub(crate) struct ProgressLine<'w> {
    err: &'w mut dyn Write,
    is_terminal: bool,
    /// Cells of the bar.
    cells: u64,
    /// The line on the terminal; empty if there is none.
    shown: String,
}

impl<'w> ProgressLine<'w> {
    /// Shows nothing yet, and nothing at all if `err` is not a terminal.
    pub(crate) fn new(err: &'w mut dyn Write, is_terminal: bool, cells: u64) -> Self {
        Self { err, is_terminal, cells, shown: String::new() }
    }

    /// Shows the parts that are done of all, and what is being done.
    pub(crate) fn show(&mut self, done: u64, all: u64, what: &str) {
        let filled = (self.cells * done / all.max(1)).min(self.cells);
        let line = format!("{} {what}", bar(filled, self.cells));
        let line = line.trim_end();
        if self.is_terminal && self.shown != line {
            // Spaces cover the rest of a longer line.
            let width = self.shown.chars().count();
            let _ = write!(self.err, "\r{line:<width$}").and_then(|()| self.err.flush());
            line.clone_into(&mut self.shown);
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        if !self.shown.is_empty() {
            let _ = write!(self.err, "\r{:1$}\r", "", self.shown.chars().count()).and_then(|()| self.err.flush());
            self.shown.clear();
        }
    }
}

impl fmt::Debug for ProgressLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressLine").field("shown", &self.shown).finish_non_exhaustive()
    }
}

fn bar(filled: u64, cells: u64) -> String {
    let (full, empty) = (usize::try_from(filled).unwrap_or(0), usize::try_from(cells - filled).unwrap_or(0));
    format!("[{}{}] {:3} %", "=".repeat(full), " ".repeat(empty), 100 * filled / cells.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(is_terminal: bool, work: impl FnOnce(&mut ProgressLine<'_>)) -> String {
        let mut err = Vec::new();
        work(&mut ProgressLine::new(&mut err, is_terminal, 4));
        String::from_utf8(err).expect("UTF-8")
    }

    #[test]
    fn progress_bar_shows_cells_and_percent() {
        assert_eq!(bar(0, 40), format!("[{}]   0 %", " ".repeat(40)));
        assert_eq!(bar(20, 40), format!("[{}{}]  50 %", "=".repeat(20), " ".repeat(20)));
        assert_eq!(bar(40, 40), format!("[{}] 100 %", "=".repeat(40)));
    }

    #[test]
    fn line_is_replaced_in_place_and_removed() {
        let work = |line: &mut ProgressLine<'_>| {
            line.show(0, 2, "first");
            line.show(0, 2, "first");
            line.show(1, 2, "b");
            line.show(7, 2, "");
            line.clear();
            line.clear();
        };
        let blank = " ".repeat(12);
        let expected = format!("\r[    ]   0 % first\r[==  ]  50 % b    \r[====] 100 %  \r{blank}\r");
        assert_eq!(shown(true, work), expected);
        assert_eq!(shown(false, work), "");
    }
}
