//! YAML as a tree of nodes that know where they stand. It is not serde, because a reader of job
//! files must point at every mistake of a file, and a tree lets it go on after the first.
//!
//! The core schema of YAML 1.2 is read strictly: only `true` and `false` are booleans, so that
//! `on:` is a key and `no` is a text; a number that begins with a zero (`017`) is a text.
//! `write` is the other direction: any value as YAML.

mod build;
mod place;
mod scalar;
mod write;

use std::ops::Range;

pub(crate) use build::{parse, parse_any_size};
pub(crate) use place::{first_line, inside};
pub(crate) use scalar::{float, integer};
#[cfg(test)]
use serde_json::{Value as Json, json};
pub use write::to_yaml;

/// No file may be larger.
pub(crate) const FILE_BYTES_MAX: usize = 1 << 20;
/// No tree may have more nodes, aliases counted as what they stand for.
pub(crate) const NODES_MAX: usize = 100_000;
/// No node may lie deeper.
pub(crate) const DEPTH_MAX: usize = 64;
/// After so many mistakes of the same file nobody reads on.
pub(crate) const MISTAKES_MAX: usize = 100;

/// A piece of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// What stands there.
    pub(crate) value: Value,
    /// Where, in bytes.
    pub(crate) span: Range<usize>,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Nothing: `null`, `~` or no text at all.
    Null,
    /// One text.
    Scalar(Scalar),
    /// Items in order.
    List(Vec<Node>),
    /// Entries in the order of the file.
    ///
    /// Invariant: no key stands twice.
    Map(Vec<Entry>),
    /// Something that a mistake has been reported for; readers are silent about it.
    Broken,
}

/// A text as it is meant, and how it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scalar {
    /// Its content.
    pub(crate) text: String,
    /// How it was written.
    pub(crate) style: Style,
}

/// How a text was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes; only such a text can be a number or a boolean.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// As a block after `|`.
    Literal,
    /// As a block after `>`.
    Folded,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// The key's text.
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) key_span: Range<usize>,
    /// What stands behind it.
    pub(crate) value: Node,
}

impl Node {
    /// The value of a key, if this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Entries, if this is a map.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// What it is, for messages: `a list`, `the number 5`.
    pub(crate) fn found(&self) -> String {
        match &self.value {
            Value::Null | Value::Broken => "nothing".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
            Value::Scalar(scalar) => match scalar.kind() {
                Kind::Bool(value) => format!("`{value}`"),
                Kind::Integer | Kind::Float => format!("the number {}", shown(&scalar.text)),
                Kind::Text => format!("the text `{}`", shown(&scalar.text)),
            },
        }
    }

    /// The same as JSON, as a JSON Schema sees it. Keys and texts stay as they are.
    #[cfg(test)]
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::Null | Value::Broken => Json::Null,
            Value::List(items) => items.iter().map(Node::to_json).collect(),
            Value::Map(entries) => {
                Json::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect())
            }
            Value::Scalar(scalar) => match scalar.kind() {
                Kind::Bool(value) => json!(value),
                Kind::Integer => integer(&scalar.text).map_or_else(|| json!(scalar.text), |number| json!(number)),
                Kind::Float => float(&scalar.text).map_or_else(|| json!(scalar.text), |number| json!(number)),
                Kind::Text => json!(scalar.text),
            },
        }
    }
}

/// What the core schema makes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool(bool),
    Integer,
    Float,
    Text,
}

impl Scalar {
    /// What the core schema makes of it.
    pub(crate) fn kind(&self) -> Kind {
        match (self.style, self.text.as_str()) {
            (Style::Plain, "true") => Kind::Bool(true),
            (Style::Plain, "false") => Kind::Bool(false),
            (Style::Plain, text) if integer(text).is_some() => Kind::Integer,
            (Style::Plain, text) if float(text).is_some() => Kind::Float,
            _ => Kind::Text,
        }
    }
}

/// A text short enough for one line of a message.
fn shown(text: &str) -> String {
    cronhold_schedule::text::shortened(text.lines().next().unwrap_or_default())
}
