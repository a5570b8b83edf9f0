//! YAML for programs and files: whatever JSON can say, in blocks, with keys in the order in which they were written. It
//! writes only, and so little that a library would be more than it is: texts that could be read as anything else are
//! quoted as JSON, which is YAML too.

use std::fmt;
use std::io::{self, Write};

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;

/// A value with its keys in order, which JSON values of our JSON library are not.
#[derive(Debug)]
enum Tree {
    Word(String),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

/// Writes a value as a document.
pub(crate) fn write(value: &(impl Serialize + ?Sized), out: &mut dyn Write) -> io::Result<()> {
    let tree: Tree = serde_json::from_str(&serde_json::to_string(value)?)?;
    let mut text = String::new();
    match &tree {
        Tree::Map(_) | Tree::List(_) => block(&tree, 0, &mut text),
        single => {
            text.push_str(&scalar(single));
            text.push('\n');
        }
    }
    out.write_all(text.as_bytes())
}

/// A list or a map, one line for each item. What is before it on the first line is there already.
fn block(tree: &Tree, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let mut is_first = true;
    let mut lead = |text: &mut String| {
        // The first line of a block inside a list stands behind the hyphen.
        if !std::mem::take(&mut is_first) || text.is_empty() || text.ends_with('\n') {
            text.push_str(&indent);
        }
    };
    match tree {
        Tree::Map(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                lead(text);
                text.push_str(&quoted(key));
                text.push(':');
                match value {
                    Tree::Map(inner) if !inner.is_empty() => {
                        text.push('\n');
                        block(value, depth + 1, text);
                    }
                    Tree::List(inner) if !inner.is_empty() => {
                        text.push('\n');
                        block(value, depth + 1, text);
                    }
                    single => {
                        text.push(' ');
                        text.push_str(&scalar(single));
                        text.push('\n');
                    }
                }
            }
        }
        Tree::List(items) if !items.is_empty() => {
            for item in items {
                lead(text);
                text.push_str("- ");
                block(item, depth + 1, text);
            }
        }
        single => {
            text.push_str(&scalar(single));
            text.push('\n');
        }
    }
}

fn scalar(tree: &Tree) -> String {
    match tree {
        Tree::Word(word) => word.clone(),
        Tree::Text(text) => quoted(text),
        Tree::List(_) => "[]".to_owned(),
        Tree::Map(_) => "{}".to_owned(),
    }
}

/// A text as it is when nothing else can be read from it, else in quotes.
fn quoted(text: &str) -> String {
    let is_letter = |sign: char| sign.is_ascii_alphabetic();
    let inside = |sign: char| sign.is_ascii_alphanumeric() || "-_./ ".contains(sign);
    let is_word = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&text.to_lowercase().as_str());
    let is_plain =
        text.starts_with(is_letter) && text.chars().all(inside) && !text.ends_with(' ') && !text.contains(" -");
    if is_plain && !is_word { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Word("null".to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Word(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Word(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Word(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Word(Number::from_f64(value).map_or_else(|| "null".to_owned(), |number| number.to_string())))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_json_can_say() {
        #[derive(Serialize)]
        struct Ordered {
            z: &'static str,
            a: serde_json::Value,
        }
        let a = serde_json::json!([
            {"one": 1, "two": [true, null, -1.5], "three": {}},
            [["deep"], []],
            "plain words", "yes", "12", "a: b", "# no", "", "two\nlines", "- x", "x -", "ä", "2026-01-01T00:00:00Z",
        ]);
        let mut out = Vec::new();
        write(&Ordered { z: "last", a }, &mut out).expect("written");
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"), @r##"
        z: last
        a:
          - one: 1
            three: {}
            two:
              - true
              - null
              - -1.5
          - - - deep
            - []
          - plain words
          - "yes"
          - "12"
          - "a: b"
          - "# no"
          - ""
          - "two\nlines"
          - "- x"
          - "x -"
          - "ä"
          - "2026-01-01T00:00:00Z"
        "##);
    }
}
