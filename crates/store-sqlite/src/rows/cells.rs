//! The cells of a row, written and read in order, so that both directions of a record's layout are next to each other.

use std::cell::Cell;
use std::fmt;
use std::fmt::Write as _;

use cronhold_core::record::RecordVersion;
use cronhold_schedule::{Instant, Span, TextError};
use rusqlite::Row;
use rusqlite::types::{Value, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Builds a row.
#[derive(Debug)]
pub(crate) struct RowCells(Vec<Value>);

/// Reads the cells of a row in order.
pub(crate) struct CellReader<'r> {
    row: &'r Row<'r>,
    next: Cell<usize>,
}

/// Why a row cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub(crate) struct UnreadableRow {
    pub(crate) column: String,
    pub(crate) message: String,
}

impl RowCells {
    pub(crate) fn new(columns: usize) -> Self {
        Self(Vec::with_capacity(columns))
    }

    pub(crate) fn into_values(self) -> Vec<Value> {
        self.0
    }

    pub(crate) fn null(&mut self) {
        self.0.push(Value::Null);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.0.push(Value::Text(text.to_owned()));
    }

    pub(crate) fn integer(&mut self, number: impl Into<i64>) {
        self.0.push(Value::Integer(number.into()));
    }

    /// A counter. No counter comes near the maximum of an SQLite integer.
    pub(crate) fn count(&mut self, number: u64) {
        self.0.push(Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)));
    }

    pub(crate) fn version(&mut self, version: RecordVersion) {
        self.0.push(version_value(version));
    }

    /// A value with a textual form that can be parsed back.
    pub(crate) fn display(&mut self, value: &impl fmt::Display) {
        let mut text = String::with_capacity(32);
        write!(text, "{value}").expect("a string takes any text");
        self.0.push(Value::Text(text));
    }

    pub(crate) fn json(&mut self, value: &(impl Serialize + ?Sized)) {
        let text = serde_json::to_string(value).expect("records have texts for keys, which JSON can hold");
        self.0.push(Value::Text(text));
    }

    pub(crate) fn instant(&mut self, at: Instant) {
        self.0.push(Value::Integer(at.micros()));
    }

    pub(crate) fn span(&mut self, span: Span) {
        self.count(span.micros());
    }

    /// A cell that may be NULL.
    pub(crate) fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => put(self, value),
            None => self.null(),
        }
    }
}

impl<'r> CellReader<'r> {
    pub(crate) fn new(row: &'r Row<'r>) -> Self {
        Self { row, next: Cell::new(0) }
    }

    pub(crate) fn text(&self) -> Result<&'r str, UnreadableRow> {
        self.option_text()?.ok_or_else(|| self.wrong("is empty"))
    }

    pub(crate) fn option_text(&self) -> Result<Option<&'r str>, UnreadableRow> {
        match self.cell()? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes).map(Some).map_err(|_| self.wrong("is not UTF-8 text")),
            _ => Err(self.wrong("holds no text")),
        }
    }

    pub(crate) fn integer<N: TryFrom<i64>>(&self) -> Result<N, UnreadableRow> {
        self.option_integer()?.ok_or_else(|| self.wrong("is empty"))
    }

    pub(crate) fn option_integer<N: TryFrom<i64>>(&self) -> Result<Option<N>, UnreadableRow> {
        match self.cell()? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => {
                N::try_from(number).map(Some).map_err(|_| self.wrong(&format!("{number} is out of range")))
            }
            _ => Err(self.wrong("is not a number")),
        }
    }

    pub(crate) fn flag(&self) -> Result<bool, UnreadableRow> {
        self.integer::<i64>().map(|number| number != 0)
    }

    pub(crate) fn version(&self) -> Result<RecordVersion, UnreadableRow> {
        self.integer().map(RecordVersion::from_bits)
    }

    pub(crate) fn instant(&self) -> Result<Instant, UnreadableRow> {
        self.integer().map(Instant::from_micros)
    }

    pub(crate) fn option_instant(&self) -> Result<Option<Instant>, UnreadableRow> {
        Ok(self.option_integer()?.map(Instant::from_micros))
    }

    pub(crate) fn span(&self) -> Result<Span, UnreadableRow> {
        self.integer().map(Span::from_micros)
    }

    pub(crate) fn option_span(&self) -> Result<Option<Span>, UnreadableRow> {
        Ok(self.option_integer()?.map(Span::from_micros))
    }

    pub(crate) fn parsed<T>(&self, parse: impl FnOnce(&str) -> Result<T, TextError>) -> Result<T, UnreadableRow> {
        parse(self.text()?).map_err(|error| self.wrong(&error.to_string()))
    }

    pub(crate) fn option_parsed<T>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<Option<T>, UnreadableRow> {
        self.option_text()?.map(parse).transpose().map_err(|error| self.wrong(&error.to_string()))
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, UnreadableRow> {
        serde_json::from_str(self.text()?).map_err(|error| self.wrong(&error.to_string()))
    }

    pub(crate) fn option_json<T: DeserializeOwned>(&self) -> Result<Option<T>, UnreadableRow> {
        self.option_text()?.map(serde_json::from_str).transpose().map_err(|error| self.wrong(&error.to_string()))
    }

    /// The error for the cell that was read last.
    pub(crate) fn wrong(&self, message: &str) -> UnreadableRow {
        let column = self.next.get().checked_sub(1).and_then(|index| self.row.as_ref().column_name(index).ok());
        UnreadableRow { column: column.unwrap_or("?").to_owned(), message: message.to_owned() }
    }

    fn cell(&self) -> Result<ValueRef<'r>, UnreadableRow> {
        let index = self.next.get();
        self.next.set(index + 1);
        self.row.get_ref(index).map_err(|error| self.wrong(&error.to_string()))
    }
}

/// A version as a cell.
pub(crate) fn version_value(version: RecordVersion) -> Value {
    // `RecordVersion` guarantees that it fits into a signed integer.
    Value::Integer(version.bits().cast_signed())
}
