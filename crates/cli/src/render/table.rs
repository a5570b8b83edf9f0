//! Tables: columns as wide as what is in them, headings when there is something below them, colours when they are
//! wanted. Long cells are cut only where the column says so, because what is cut cannot be copied.

use std::io::{self, Write};

use cronhold_core::run::State;

/// What stands between two columns.
const GAP: &str = "  ";

/// How a cell looks on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Plain,
    Green,
    Red,
    Yellow,
    Cyan,
    Faint,
    Bold,
}

impl Colour {
    /// What is written before a text in that colour.
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

    /// A text in that colour, if colours are wanted.
    pub(crate) fn paint(self, text: &str, colours: bool) -> String {
        if colours && self != Self::Plain { format!("{}{text}\x1b[0m", self.start()) } else { text.to_owned() }
    }
}

/// One cell.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    colour: Colour,
}

impl Cell {
    /// A text in a colour.
    pub(crate) fn new(text: impl Into<String>, colour: Colour) -> Self {
        // A cell has one line, whatever someone wrote into a description.
        let text = text.into().replace(|sign: char| sign.is_control(), " ");
        Self { text, colour }
    }

    /// A state in its colour.
    pub(crate) fn state(state: State) -> Self {
        Self::new(state.name(), Colour::of(state))
    }

    /// The same, cut when it is longer than that many signs.
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

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Colour::Plain)
    }
}

/// A table in the making.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// One row more, with a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.headings.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes it; a table without rows is nothing at all. A column in which nothing stands is left out.
    pub(crate) fn write(&self, colours: bool, out: &mut dyn Write) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let widths: Vec<usize> = (0..self.headings.len()).map(|column| self.width(column)).collect();
        let headings: Vec<Cell> = self.headings.iter().map(|heading| Cell::new(*heading, Colour::Faint)).collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let mut line = String::new();
            let mut blanks = 0;
            for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
                // Blanks are written when something follows them, so that no line ends with any.
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

    fn shown(table: &Table, colours: bool) -> String {
        let mut out = Vec::new();
        table.write(colours, &mut out).expect("written");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let mut table = Table::new(&["JOB", "STATE", "NOBODY", "NOTES"]);
        assert_eq!(shown(&table, false), "");
        table.row(["a".into(), Cell::state(State::Success), "".into(), Cell::from("äöü with more").cut(5)]);
        table.row(["reports/prices".into(), "".into(), "".into(), "".into()]);
        table.row(["b".into(), "".into(), "".into(), "two\nlines".into()]);
        insta::assert_snapshot!(shown(&table, false), @r"
        JOB             STATE    NOTES
        a               success  äöü w…
        reports/prices
        b                        two lines
        ");
        assert!(shown(&table, true).contains("\x1b[32msuccess\x1b[0m  äöü"), "{}", shown(&table, true));
    }
}
