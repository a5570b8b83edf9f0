//! YAML as a tree of nodes with their places. It does not use serde, because the reader of job files reports every mistake
//! of a file with its place, and a tree lets it continue after the first.
//!
//! The core schema of YAML 1.2 is read strictly: only `true` and `false` are booleans, so that
//! `on:` is a key and `no` is a text; a number that begins with a zero (`017`) is a text.
//! `write` is the other direction: any value as YAML. `json` reads the stored form of a job into the same tree.

mod build;
mod json;
mod place;
mod scalar;
mod write;

use std::ops::Range;

pub(crate) use build::parse;
pub(crate) use json::parse_json;
pub(crate) use place::{first_line, inside};
pub(crate) use scalar::{float, integer};
#[cfg(test)]
use serde_json::{Value as Json, json};
pub use write::{escape_unprintable, to_yaml};

/// Largest size of a file, in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 1 << 20;
/// Most nodes of a tree, with each alias counted as the nodes that it copies.
pub(crate) const NODES_MAX: usize = 100_000;
/// Deepest nesting of nodes.
pub(crate) const DEPTH_MAX: usize = 64;
/// Most mistakes that are reported for one file.
pub(crate) const MISTAKES_MAX: usize = 100;

/// A value and its place in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlNode {
    pub(crate) value: YamlValue,
    /// Byte range in the file.
    pub(crate) span: Range<usize>,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum YamlValue {
    /// `null`, `~` or no text at all.
    Null,
    /// A text, number or boolean.
    Scalar(YamlScalar),
    List(Vec<YamlNode>),
    /// A map, with its entries in the order of the file.
    ///
    /// Invariant: no key occurs twice.
    Map(Vec<YamlEntry>),
    /// A value for which a mistake has been reported already; readers do not report another.
    Broken,
}

/// The content of a scalar, and how it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlScalar {
    /// Its content, without quotes and escapes.
    pub(crate) text: String,
    /// How it was written.
    pub(crate) style: TextStyle,
}

/// How a scalar was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextStyle {
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
pub(crate) struct YamlEntry {
    /// The text of the key.
    pub(crate) key: String,
    /// Byte range of the key.
    pub(crate) key_span: Range<usize>,
    /// The value of the key.
    pub(crate) value: YamlNode,
}

impl YamlNode {
    /// The value of a key, if this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&YamlNode> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Entries, if this is a map.
    pub(crate) fn entries(&self) -> &[YamlEntry] {
        match &self.value {
            YamlValue::Map(entries) => entries,
            _ => &[],
        }
    }

    /// What the value is called in messages: `a list`, `the number 5`.
    pub(crate) fn found(&self) -> String {
        match &self.value {
            YamlValue::Null | YamlValue::Broken => "nothing".to_owned(),
            YamlValue::List(_) => "a list".to_owned(),
            YamlValue::Map(_) => "a map".to_owned(),
            YamlValue::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Bool(value) => format!("`{value}`"),
                ScalarKind::Integer | ScalarKind::Float => format!("the number {}", shown(&scalar.text)),
                ScalarKind::Text => format!("the text `{}`", shown(&scalar.text)),
            },
        }
    }

    /// The value as JSON.
    #[cfg(test)]
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            YamlValue::Null | YamlValue::Broken => Json::Null,
            YamlValue::List(items) => items.iter().map(YamlNode::to_json).collect(),
            YamlValue::Map(entries) => {
                Json::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect())
            }
            YamlValue::Scalar(scalar) => match scalar.kind() {
                ScalarKind::Bool(value) => json!(value),
                ScalarKind::Integer => integer(&scalar.text).map_or_else(|| json!(scalar.text), |number| json!(number)),
                ScalarKind::Float => float(&scalar.text).map_or_else(|| json!(scalar.text), |number| json!(number)),
                ScalarKind::Text => json!(scalar.text),
            },
        }
    }
}

/// The type that the core schema gives to a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    Bool(bool),
    Integer,
    Float,
    Text,
}

impl YamlScalar {
    /// The type that the core schema gives to it.
    pub(crate) fn kind(&self) -> ScalarKind {
        match (self.style, self.text.as_str()) {
            (TextStyle::Plain, "true") => ScalarKind::Bool(true),
            (TextStyle::Plain, "false") => ScalarKind::Bool(false),
            (TextStyle::Plain, text) if integer(text).is_some() => ScalarKind::Integer,
            (TextStyle::Plain, text) if float(text).is_some() => ScalarKind::Float,
            _ => ScalarKind::Text,
        }
    }
}

/// A text short enough for one line of a message.
fn shown(text: &str) -> String {
    cronhold_schedule::text::shortened(text.lines().next().unwrap_or_default())
}
