//! The YAML writer: any value that JSON can express, in block style, with keys in the order in which the value has them.
//! It is the only one in the workspace. The reader of job files reads back the same value.

use std::borrow::Cow;
use std::fmt::Write as _;

use cronhold_schedule::text::is_deceptive;
use serde::Serialize;
use serde::ser::Error as _;
use serde_json::Value as Json;

use super::{TextStyle, YamlNode, YamlValue, parse_json};

/// Words that readers of YAML take for something other than a text.
const RESERVED_WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// Writes a value as a YAML document that ends with a newline. It fails only if the value cannot be expressed in JSON,
/// such as a map whose keys are not texts.
pub fn to_yaml(value: &(impl Serialize + ?Sized)) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(value)?;
    let tree = match parse_json("value", &json) {
        (Some(tree), _) => tree,
        (None, mistakes) => {
            let messages: Vec<String> = mistakes.into_iter().map(|mistake| mistake.message).collect();
            return Err(serde_json::Error::custom(messages.join("; ")));
        }
    };
    let mut text = String::new();
    write_node(&tree, 0, &mut text);
    Ok(text)
}

/// Writes a node whose first line continues the current one, and a newline.
fn write_node(node: &YamlNode, depth: usize, text: &mut String) {
    match &node.value {
        YamlValue::Map(entries) if !entries.is_empty() => {
            for (index, entry) in entries.iter().enumerate() {
                if index > 0 {
                    indent(depth, text);
                }
                text.push_str(&one_line(&entry.key));
                text.push(':');
                if is_block_collection(&entry.value) {
                    text.push('\n');
                    indent(depth + 1, text);
                } else {
                    text.push(' ');
                }
                write_node(&entry.value, depth + 1, text);
            }
        }
        YamlValue::List(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    indent(depth, text);
                }
                text.push_str("- ");
                write_node(item, depth + 1, text);
            }
        }
        scalar => {
            match scalar {
                YamlValue::Null | YamlValue::Broken => text.push_str("null"),
                YamlValue::Scalar(scalar) if scalar.style == TextStyle::Plain => text.push_str(&scalar.text),
                // A block scalar at the top of a document would not be indented.
                YamlValue::Scalar(scalar) if depth > 0 && reads_better_as_block(&scalar.text) => {
                    write_block_text(&scalar.text, depth, text);
                }
                YamlValue::Scalar(scalar) => text.push_str(&one_line(&scalar.text)),
                YamlValue::List(_) => text.push_str("[]"),
                YamlValue::Map(_) => text.push_str("{}"),
            }
            text.push('\n');
        }
    }
}

fn is_block_collection(node: &YamlNode) -> bool {
    match &node.value {
        YamlValue::Map(entries) => !entries.is_empty(),
        YamlValue::List(items) => !items.is_empty(),
        YamlValue::Null | YamlValue::Scalar(_) | YamlValue::Broken => false,
    }
}

fn indent(depth: usize, text: &mut String) {
    text.extend(std::iter::repeat_n("  ", depth));
}

/// A text on one line: without quotes if no YAML parser can mistake it for something else, otherwise quoted as in JSON,
/// which is valid YAML.
fn one_line(text: &str) -> String {
    let starts_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '/' | '.'));
    let is_plain = starts_plain
        && text.chars().all(|sign| sign.is_ascii_alphanumeric() || " _-./=+@()$%".contains(sign))
        && text.contains(|sign: char| sign.is_ascii_alphanumeric())
        && !text.ends_with(' ')
        && !RESERVED_WORDS.contains(&text.to_ascii_lowercase().as_str())
        && text.trim_start_matches('.').parse::<f64>().is_err();
    if is_plain { text.to_owned() } else { escape_unprintable(&Json::from(text).to_string()).into_owned() }
}

/// Escapes the characters in the strings of a JSON text that YAML rejects or that do not show what they are. The result
/// is JSON with the same value, and every reader of YAML reads it.
pub fn escape_unprintable(json: &str) -> Cow<'_, str> {
    if json.chars().all(is_printable) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for sign in json.chars() {
        if is_printable(sign) {
            escaped.push(sign);
        } else {
            for unit in sign.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("a string takes any text");
            }
        }
    }
    Cow::Owned(escaped)
}

/// Whether a character can stand for itself in a quoted text. The others are invalid in YAML, end a line in some of its
/// readers, or are invisible and may change the order of the text around them. White space of JSON is outside of strings.
fn is_printable(sign: char) -> bool {
    matches!(sign, '\n' | '\r' | '\t') || !(sign.is_control() || is_deceptive(sign))
}

/// Whether a text has several lines and comes back unchanged from a block scalar.
fn reads_better_as_block(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n'])
        && !text.ends_with("\n\n")
        && text.chars().all(|sign| {
            matches!(sign, '\n' | ' ') || !(sign.is_control() || sign.is_whitespace() || is_deceptive(sign))
        })
}

fn write_block_text(content: &str, depth: usize, text: &mut String) {
    text.push_str(if content.ends_with('\n') { "|" } else { "|-" });
    for line in content.trim_end_matches('\n').split('\n') {
        text.push('\n');
        if !line.is_empty() {
            indent(depth, text);
        }
        text.push_str(line);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::yaml::parse;
    use crate::{Options, read_job, read_job_of_any_version, write_job};

    #[test]
    fn values_are_written_in_blocks_with_their_keys_in_order() {
        #[derive(Serialize)]
        struct Ordered {
            z: &'static str,
            a: Json,
        }
        let a = json!([
            {"one": 1, "two": [true, null, -1.5], "three": {}},
            [["deep"], []],
            "plain words", "yes", "12", "a: b", "# no", "", "two\nlines", "- x", "x -", "ä", "2026-01-01T00:00:00Z",
        ]);
        insta::assert_snapshot!(to_yaml(&Ordered { z: "last", a }).expect("JSON"), @r##"
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
          - |-
            two
            lines
          - "- x"
          - x -
          - "ä"
          - "2026-01-01T00:00:00Z"
        "##);
    }

    #[test]
    fn job_is_written_in_common_style() {
        let text = "{schedule: '0 3 * * *', program: \"cd /srv\\n./backup --all\\n\", labels: [nightly]}";
        let job = read_job("job", text, &Options::default()).job.expect("good");
        let expected =
            "labels:\n  - nightly\nprogram: |\n  cd /srv\n  ./backup --all\nschedule:\n  - cron: \"0 3 * * *\"\n";
        assert_eq!(to_yaml(&write_job(&job)).expect("JSON"), expected);
    }

    #[test]
    fn jobs_read_back_as_the_same_jobs() {
        for text in [
            "program: 'echo hi'",
            "{schedule: '0 3 * * *', program: [echo, 'a b', '-n', '*', '1', 'true', 'null', '', ' x ']}",
            "{program: [echo, 'a: b', 'a #b', '0x1f', '.5', '.inf', '1e3', '2026-01-01', '=', '<<', 'a,b', '[', '{{ 1 }}']}",
            "program: \"set -e\\nfor i in 1 2; do\\n  echo $i\\n\\ndone\\n\"\ndescription: \"two\\n\\nparagraphs\"",
            "program: \" first\\n second\"",
            "program: \"a\\tb\\nc\\n\\n\"",
            "program: \"größe ✓ \\u0085 \\u2028\"",
            "{program: 'x', env: {A: '1.5', B: {file: /etc/x}, C: ''}, labels: [a, 'no', '2']}",
            "{program: 'x', params: {p: {default: '', choices: ['', b]}, q: {}}}",
            "{program: {noop: 1s}, schedule: [{every: 15m, name: a, args: {}}, {cron: 'H 3 * * Mon', enabled: false}]}",
            "{program: 'x', conditions: [{max_running: 1}, {any: [{file: /x}, {not: {file: /y}}]}]}",
        ] {
            let read = read_job_of_any_version("job", text, &Options::default());
            let job = read.job.unwrap_or_else(|| panic!("{text}: {:?}", read.mistakes));
            let yaml = to_yaml(&write_job(&job)).expect("JSON");
            let again = read_job_of_any_version("job", &yaml, &Options::default());
            assert_eq!(again.job.as_ref(), Some(&job), "{yaml}\n{:?}", again.mistakes);
        }
    }

    /// Texts that a careless writer would leave without quotes.
    const TRAPS: [&str; 40] = [
        "", " ", "~", "null", "Null", "true", "No", "on", "y", "0", "-1", "0o17", "0x1f", "017", "1.5", ".5", "1e3",
        "inf", ".inf", ".nan", "...", "---", ".", "-", "- x", "? x", ": x", "a: b", "a #b", "#", "&a", "*a", "!x", "|",
        ">", "%x", "@x", "`x`", "{{ x }}", "a\n",
    ];

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            prop::sample::select(&TRAPS[..]).prop_map(str::to_owned),
            "[a-z ./=+@()$%:#'\"\\\\{}\\[\\],&*!|>~?-]{0,12}",
            "[ \n\ta-z:#-]{0,20}",
            "\\PC{0,12}",
            any::<String>(),
        ]
    }

    fn values() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<i32>().prop_map(|eighths| Json::from(f64::from(eighths) / 8.0)),
            texts().prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
                prop::collection::btree_map(texts(), inner, 0..6)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    fn assert_reads_back(value: &Json) {
        let text = to_yaml(value).expect("JSON");
        let (node, mistakes) = parse("value", &text);
        assert_eq!(mistakes, [], "{text}");
        assert_eq!(node.expect("a document").to_json(), *value, "{text}");
    }

    #[test]
    fn traps_read_back_as_the_same_texts() {
        for text in TRAPS {
            assert_reads_back(&json!(text));
            assert_reads_back(&json!([text, {"key": text}]));
            assert_reads_back(&json!({ text: text }));
        }
    }

    /// All characters, 64 in a text.
    #[test]
    fn every_character_reads_back_as_itself() {
        let all: Vec<char> = ('\0'..=char::MAX).collect();
        for signs in all.chunks(64) {
            let text: String = signs.iter().collect();
            assert_reads_back(&json!({"text": text, &text: ["x", format!("a\n{text}b")]}));
            let line: String = signs.iter().filter(|sign| !matches!(sign, '\n' | '\r')).collect();
            assert_reads_back(&json!([format!("two\nlines {line}\n"), &line]));
        }
    }

    proptest! {
        #[test]
        fn every_value_reads_back_as_the_same_value(value in values()) {
            assert_reads_back(&value);
        }
    }
}
