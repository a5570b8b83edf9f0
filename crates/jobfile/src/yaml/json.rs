//! JSON as the same tree of nodes that YAML is read into. Stores keep jobs as JSON. Almost every JSON text is also YAML,
//! but not all of them: YAML rejects some characters that JSON allows in a text, and limits what a file may contain. So
//! what was written as JSON is read as JSON.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::de::IgnoredAny;

use super::{TextStyle, YamlEntry, YamlNode, YamlScalar, YamlValue};
use crate::mistake::Mistake;

/// Deepest nesting of a stored job. It is larger than that of a job file, because short forms are written out.
const STORED_DEPTH_MAX: usize = 4 * super::DEPTH_MAX;

/// Parses a JSON document of any size. The tree is absent if there is a mistake.
pub(crate) fn parse_json(file: &str, text: &str) -> (Option<YamlNode>, Vec<Mistake>) {
    let parsed = match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => JsonScanner { text, at: 0 }.node(0),
        Err(error) => Err((0..0, error.to_string())),
    };
    match parsed {
        Ok(root) => (Some(root), Vec::new()),
        Err((at, reason)) => (None, vec![Mistake::new(file, at, format!("this is not JSON: {reason}"))]),
    }
}

/// The place of a mistake and what is wrong.
type JsonMistake = (Range<usize>, String);

/// Reads nodes one after the other from a text that is valid JSON apart from the content of its strings.
struct JsonScanner<'t> {
    text: &'t str,
    at: usize,
}

impl JsonScanner<'_> {
    fn node(&mut self, depth: usize) -> Result<YamlNode, JsonMistake> {
        if depth > STORED_DEPTH_MAX {
            return Err((self.at..self.at, format!("values are nested more than {STORED_DEPTH_MAX} deep")));
        }
        let first = self.peek();
        let start = self.at;
        let value = match first {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => YamlValue::Scalar(YamlScalar { text: self.string()?, style: TextStyle::Quoted }),
            _ => self.literal(),
        };
        Ok(YamlNode { value, span: start..self.at })
    }

    fn map(&mut self, depth: usize) -> Result<YamlValue, JsonMistake> {
        let (mut entries, mut seen) = (Vec::new(), BTreeSet::new());
        self.at += 1;
        while self.peek() == Some(b'"') {
            let start = self.at;
            let key = self.string()?;
            let key_span = start..self.at;
            if !seen.insert(key.clone()) {
                return Err((key_span, format!("duplicate key `{key}`")));
            }
            self.skip(b':');
            entries.push(YamlEntry { key, key_span, value: self.node(depth + 1)? });
            self.skip(b',');
        }
        self.skip(b'}');
        Ok(YamlValue::Map(entries))
    }

    fn list(&mut self, depth: usize) -> Result<YamlValue, JsonMistake> {
        let mut items = Vec::new();
        self.at += 1;
        while self.peek().is_some_and(|next| next != b']') {
            items.push(self.node(depth + 1)?);
            self.skip(b',');
        }
        self.skip(b']');
        Ok(YamlValue::List(items))
    }

    fn string(&mut self) -> Result<String, JsonMistake> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        while bytes.get(end).is_some_and(|byte| *byte != b'"') {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        self.at = (end + 1).min(bytes.len());
        let written = self.text.get(start..self.at).unwrap_or_default();
        serde_json::from_str(written).map_err(|error| (start..self.at, error.to_string()))
    }

    /// `null`, `true`, `false` or a number, whose text is kept, so that it has the same value afterwards.
    fn literal(&mut self) -> YamlValue {
        let rest = &self.text[self.at..];
        let end = rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
        self.at += end;
        match &rest[..end] {
            "null" => YamlValue::Null,
            text => YamlValue::Scalar(YamlScalar { text: text.to_owned(), style: TextStyle::Plain }),
        }
    }

    /// The next byte after white space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) {
        if self.peek() == Some(byte) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use super::*;

    fn assert_reads_back(value: &Json) {
        for text in [value.to_string(), format!("{value:#}")] {
            let (node, mistakes) = parse_json("job", &text);
            assert_eq!(mistakes, [], "{text}");
            assert_eq!(node.expect("a tree").to_json(), *value, "{text}");
        }
    }

    #[test]
    fn json_is_read_with_its_places() {
        let text = r#"{"a": [1, -2.5e3, true, null, {}, []], "b\n": "x\u0092\ud83d\ude00"}"#;
        let (root, mistakes) = parse_json("job", text);
        assert_eq!(mistakes, []);
        let root = root.expect("a tree");
        assert_eq!(root.to_json(), serde_json::from_str::<Json>(text).expect("JSON"));
        assert_eq!(&text[root.get("b\n").expect("b").span.clone()], r#""x\u0092\ud83d\ude00""#);
    }

    #[test]
    fn invalid_json_is_a_mistake() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        for text in ["", "{", "program: x", r#"{"a":1,"a":2}"#, r#"{"a":"\ud800"}"#, "[1,]", "1 2", deep.as_str()] {
            let (root, mistakes) = parse_json("job", text);
            assert!(root.is_none() && mistakes.len() == 1, "{text:.20}");
        }
    }

    proptest! {
        #[test]
        fn every_json_value_is_read(
            texts in prop::collection::vec(any::<String>(), 0..4),
            map in prop::collection::btree_map(any::<String>(), any::<i64>(), 0..4),
        ) {
            assert_reads_back(&json!({"texts": texts, "map": map, "nested": [[map.len()], {"x": texts}]}));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[\\[\\]{}\":,\\\\ua-f0-9 ]{0,24}") {
            let _ = parse_json("job", &text);
        }
    }
}
