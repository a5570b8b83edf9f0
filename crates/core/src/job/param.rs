//! Params of a job, and which values they accept. Arguments are always strings: a type says which strings are allowed, so
//! that equal values have equal text, by which conditions identify runs.

use std::fmt;
use std::sync::Arc;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{Day, TextError};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// One parameter of a job. Arguments are always strings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Param {
    /// Value that is used if none is given; a param without a default is required.
    pub default: Option<String>,
    /// Allowed values; any value when empty.
    pub choices: Vec<String>,
    /// What its values mean.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// What every value must match; any value when absent.
    pub pattern: Option<ArgPattern>,
    /// Description, shown to users.
    pub description: String,
}

/// What the values of a param mean, and so how they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamType {
    /// Any text.
    #[default]
    String,
    /// A whole number of 64 bits, without leading zeros.
    Int,
    /// A date such as `2026-03-29`.
    Date,
    /// `true` or `false`.
    Bool,
}

/// A regular expression that a whole value has to match. Cheap to clone.
#[derive(Clone)]
pub struct ArgPattern {
    text: Arc<str>,
    regex: Regex,
}

impl ParamType {
    /// All types.
    pub const ALL: [Self; 4] = [Self::String, Self::Int, Self::Date, Self::Bool];
    /// The words for them in a job file, in the same order.
    pub const NAMES: &'static [&'static str] = &["string", "int", "date", "bool"];

    /// The word for it in a job file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Int => "int",
            Self::Date => "date",
            Self::Bool => "bool",
        }
    }

    /// A value of the type, and how to write one.
    pub const fn noun(self) -> (&'static str, &'static str) {
        match self {
            Self::String => ("a text", "write any text"),
            Self::Int => ("a whole number", "write digits without leading zeros, such as 42 or -7"),
            Self::Date => ("a date", "write year-month-day, such as 2026-03-29"),
            Self::Bool => ("a boolean", "write true or false"),
        }
    }

    /// Whether a text is a value of the type. Each value has one text only.
    pub fn accepts(self, value: &str) -> bool {
        match self {
            Self::String => true,
            Self::Int => value.parse::<i64>().is_ok_and(|number| number.to_string() == value),
            Self::Date => Day::parse(value).is_ok_and(|day| day.to_string() == value),
            Self::Bool => matches!(value, "true" | "false"),
        }
    }
}

impl ArgPattern {
    /// The size of a compiled expression in bytes, so that a job cannot take much memory.
    const COMPILED_MAX: usize = 256 * 1024;
    /// Longest expression in bytes.
    const TEXT_MAX: usize = 1_000;

    /// Parses a regular expression.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let whole = 0..text.len();
        if text.len() > Self::TEXT_MAX {
            return Err(TextError::new(whole, format!("a pattern can have at most {} bytes", Self::TEXT_MAX)));
        }
        // An expression that is valid only within the group is not valid.
        let build = |text: &str| RegexBuilder::new(text).size_limit(Self::COMPILED_MAX).build();
        let regex = build(text).and_then(|_| build(&format!(r"\A(?:{text})\z")));
        match regex {
            Ok(regex) => Ok(Self { text: text.into(), regex }),
            Err(error) => {
                let reason =
                    error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                let message = format!("`{}` is not a regular expression: {reason}", shortened(text));
                Err(TextError::new(whole, message))
            }
        }
    }

    /// The expression.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a whole value matches.
    pub fn matches(&self, value: &str) -> bool {
        self.regex.is_match(value)
    }
}

impl PartialEq for ArgPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ArgPattern {}

impl fmt::Debug for ArgPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ArgPattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_accepts_one_text_for_a_value() {
        for (kind, good, bad) in [
            (ParamType::String, &["", "x", "1"][..], &[][..]),
            (
                ParamType::Int,
                &["0", "-7", "42", "9223372036854775807", "-9223372036854775808"],
                &["", "+1", "007", "-0", "1.0", "1e3", " 1", "9223372036854775808", "x"],
            ),
            (
                ParamType::Date,
                &["2026-03-29", "2024-02-29"],
                &["", "2026-3-29", "2026-02-30", "today", "2026-03-29T00"],
            ),
            (ParamType::Bool, &["true", "false"], &["", "True", "yes", "1"]),
        ] {
            let is_accepted = |value: &&&str| kind.accepts(value);
            assert_eq!(good.iter().find(|value| !is_accepted(value)), None, "{kind:?}");
            assert_eq!(bad.iter().find(is_accepted), None, "{kind:?}");
        }
        assert_eq!(ParamType::ALL.map(ParamType::name), ParamType::NAMES);
    }

    #[test]
    fn pattern_has_to_match_the_whole_value() {
        let pattern = ArgPattern::parse("[a-z]+|x1").expect("a pattern");
        for (value, expected) in
            [("abc", true), ("x1", true), ("abc1", false), ("1abc", false), ("", false), ("a\n", false)]
        {
            assert_eq!(pattern.matches(value), expected, "{value:?}");
        }
    }

    #[test]
    fn invalid_pattern_names_the_reason() {
        for (text, expected) in [
            ("a)(b", "`a)(b` is not a regular expression: unopened group"),
            ("[", "`[` is not a regular expression: unclosed character class"),
            (&"x".repeat(1_001), "a pattern can have at most 1000 bytes"),
        ] {
            assert_eq!(ArgPattern::parse(text).expect_err("invalid").message, expected);
        }
        let large = ArgPattern::parse(r"\w{1000}").expect_err("too large");
        assert!(large.message.contains("size limit"), "{}", large.message);
    }
}
