//! Text tables with headings and optional colours. Cells are truncated only where the caller asks for it, because
//! truncated text cannot be copied.

use std::io::{self, Write};

use cronhold_core::run::State;
use cronhold_schedule::text::visible;

/// Separator between columns.
const GAP: &str = "  ";

/// Colour or weight of a text on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellColour {
    Plain,
    Green,
    Red,
    Yellow,
    Cyan,
    Faint,
    Bold,
}

impl CellColour {
    /// The escape sequence that starts the colour.
    pub(crate) fn start(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Green => "\x1b[32m",
            Self::Red => "\x1b[31m",
            Self::Yellow => "\x1b[33m",
            Self::Cyan => "\x1b[36m",
            Self::Faint => "\x1b[2m",
            Self::Bold => "\x1b[1m",
        }
    }

    /// The colour of a state.
    pub(crate) fn of(state: State) -> Self {
        match state {
            State::Success => Self::Green,
            State::Failure | State::Error => Self::Red,
            State::Skipped => Self::Yellow,
            State::Starting | State::Running | State::Stopping => Self::Cyan,
            State::Scheduled | State::Waiting => Self::Plain,
        }
    }

    /// The text in this colour, or unchanged if `colours` is false.
    pub(crate) fn paint(self, text: &str, colours: bool) -> String {
        if colours && self != Self::Plain { format!("{}{text}\x1b[0m", self.start()) } else { text.to_owned() }
    }
}

/// A table cell: one line of text with a colour.
#[derive(Debug, Clone)]
pub(crate) struct TableCell {
    text: String,
    colour: CellColour,
}

impl TableCell {
    /// Creates a cell. Characters that cannot be seen are escaped.
    pub(crate) fn new(text: impl Into<String>, colour: CellColour) -> Self {
        let text = visible(&text.into()).into_owned();
        Self { text, colour }
    }

    /// A state in its colour.
    pub(crate) fn state(state: State) -> Self {
        Self::new(state.name(), CellColour::of(state))
    }

    /// Truncates the text to this number of characters.
    pub(crate) fn cut(mut self, most: usize) -> Self {
        if let Some((end, _)) = self.text.char_indices().nth(most) {
            self.text.truncate(end);
            self.text.push('…');
        }
        self
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self::new(text, CellColour::Plain)
    }
}

/// Headings and rows of a table.
#[derive(Debug)]
pub(crate) struct TextTable {
    headings: Vec<&'static str>,
    rows: Vec<Vec<TableCell>>,
}

impl TextTable {
    /// A table with these columns.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, which must have a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = TableCell>) {
        let cells: Vec<TableCell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.headings.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// Whether the table has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table, or nothing if it has no rows. Empty columns are omitted.
    pub(crate) fn write(&self, colours: bool, out: &mut dyn Write) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let widths: Vec<usize> = (0..self.headings.len()).map(|column| self.width(column)).collect();
        let headings: Vec<TableCell> =
            self.headings.iter().map(|heading| TableCell::new(*heading, CellColour::Faint)).collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let mut line = String::new();
            let mut blanks = 0;
            for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
                // Write padding only before another cell, so that no line ends with spaces.
                if !cell.text.is_empty() {
                    line.push_str(&" ".repeat(blanks));
                    line.push_str(&cell.colour.paint(&cell.text, colours));
                    blanks = 0;
                }
                blanks += width - cell.width() + GAP.len();
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn width(&self, column: usize) -> usize {
        let widest = self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
        if widest == 0 { 0 } else { widest.max(self.headings[column].chars().count()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(table: &TextTable, colours: bool) -> String {
        let mut out = Vec::new();
        table.write(colours, &mut out).expect("written");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn columns_fit_their_widest_cell() {
        let mut table = TextTable::new(&["JOB", "STATE", "EMPTY", "NOTES"]);
        assert_eq!(shown(&table, false), "");
        table.row(["a".into(), TableCell::state(State::Success), "".into(), TableCell::from("äöü with more").cut(5)]);
        table.row(["reports/prices".into(), "".into(), "".into(), "".into()]);
        table.row(["b".into(), "".into(), "".into(), "two\nlines".into()]);
        insta::assert_snapshot!(shown(&table, false), @r"
        JOB             STATE    NOTES
        a               success  äöü w…
        reports/prices
        b                        two\nlines
        ");
        assert!(shown(&table, true).contains("\x1b[32msuccess\x1b[0m  äöü"), "{}", shown(&table, true));
    }
}
