//! One message of a plug-in. A line that is not a message is reported with what is wrong, in words that its author can
//! act on.

use std::fmt;

use cronhold_schedule::text::shortened;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::PluginKind;

/// Characters of the message of a result that are kept.
const RESULT_MAX: usize = 1_000;
/// Characters of the text of a progress message that are kept.
const PROGRESS_MAX: usize = 200;

/// A message of a plug-in.
#[derive(Debug, Clone, PartialEq)]
pub enum PluginMessage {
    /// Text for the output of the run. It ends with the end of a line.
    Output(String),
    /// How far the work is.
    Progress(PluginProgress),
    /// How the work ended, or the answer to a check.
    Result(PluginResult),
}

/// How far a plug-in is with its work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginProgress {
    /// Percent of the work that is done, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// What it does now; one line, may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// What a plug-in reports at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginResult {
    /// The outcome.
    pub outcome: PluginOutcome,
    /// Its explanation; one line, may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The outcome of a plug-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PluginOutcome {
    /// A program did its work.
    Success,
    /// A program could not do its work.
    Failure,
    /// A condition holds.
    Holds,
    /// A condition does not hold.
    DoesNotHold,
    /// It is unknown whether the work is done, or whether the condition holds.
    Error,
}

impl PluginOutcome {
    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Holds => "holds",
            Self::DoesNotHold => "does_not_hold",
            Self::Error => "error",
        }
    }
}

impl PluginMessage {
    /// Parses a line without its end. The error describes what is wrong with it.
    pub fn parse(kind: PluginKind, line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|_| "it is not valid UTF-8".to_owned())?;
        let value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {}", without_line(&error)))?;
        let Value::Object(map) = value else { return Err("it is not a JSON object".to_owned()) };
        let Some(Value::String(name)) = map.get("type") else {
            return Err("it has no `type`, such as `output`, `progress` or `result`".to_owned());
        };
        match name.as_str() {
            "output" => output(&map),
            "progress" => progress(&map),
            "result" => result(kind, &map),
            _ => Err(format!("`{}` is not a type of a message: `output`, `progress` or `result`", shortened(name))),
        }
    }
}

fn output(map: &Map<String, Value>) -> Result<PluginMessage, String> {
    known(map, "output", &["type", "text"])?;
    match map.get("text") {
        Some(Value::String(text)) if text.ends_with('\n') => Ok(PluginMessage::Output(text.clone())),
        Some(Value::String(text)) => Ok(PluginMessage::Output(format!("{text}\n"))),
        _ => Err("`output` needs `text`, which is a string".to_owned()),
    }
}

fn progress(map: &Map<String, Value>) -> Result<PluginMessage, String> {
    known(map, "progress", &["type", "percent", "text"])?;
    let percent = match map.get("percent") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let percent = value.as_f64().filter(|percent| (0.0..=100.0).contains(percent));
            let percent = percent.ok_or_else(|| "`percent` is not a number from 0 to 100".to_owned())?;
            Some(whole(percent))
        }
    };
    let text = match map.get("text") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => one_line(text, PROGRESS_MAX),
        Some(_) => return Err("`text` of `progress` is not a string".to_owned()),
    };
    if percent.is_none() && text.is_empty() {
        return Err("`progress` needs `percent`, `text` or both".to_owned());
    }
    Ok(PluginMessage::Progress(PluginProgress { percent, text }))
}

fn result(kind: PluginKind, map: &Map<String, Value>) -> Result<PluginMessage, String> {
    known(map, "result", &["type", "outcome", "message"])?;
    let outcomes = kind.outcomes();
    let given = map.get("outcome").and_then(Value::as_str);
    let Some(outcome) = outcomes.into_iter().find(|outcome| Some(outcome.name()) == given) else {
        let names = outcomes.map(|outcome| format!("`{}`", outcome.name())).join(", ");
        return Err(format!("`result` needs `outcome`, which is one of {names}"));
    };
    let message = match map.get("message") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => one_line(text, RESULT_MAX),
        Some(_) => return Err("`message` of `result` is not a string".to_owned()),
    };
    Ok(PluginMessage::Result(PluginResult { outcome, message }))
}

/// A misspelt key would be ignored, so it is refused.
fn known(map: &Map<String, Value>, name: &str, keys: &[&str]) -> Result<(), String> {
    match map.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("`{name}` has no key `{}`", shortened(key))),
        None => Ok(()),
    }
}

/// Rounded down, so that 100 means that the work is done.
fn whole(percent: f64) -> u8 {
    (0..=100).rev().find(|whole| f64::from(*whole) <= percent).unwrap_or(0)
}

/// The text on one line, shortened. Control characters become blanks.
fn one_line(text: &str, most: usize) -> String {
    let blank = |letter: char| if letter.is_control() { ' ' } else { letter };
    let line: String = text.trim().chars().map(blank).collect();
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What is wrong with JSON in one line: the column, not the line.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what} at column {}", error.column())
}

impl fmt::Display for PluginProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.percent, self.text.as_str()) {
            (Some(percent), "") => write!(f, "{percent} %"),
            (Some(percent), text) => write!(f, "{percent} %, {text}"),
            (None, text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: PluginKind, line: &str) -> String {
        match PluginMessage::parse(kind, line.as_bytes()) {
            Ok(PluginMessage::Output(text)) => format!("output {text:?}"),
            Ok(PluginMessage::Progress(progress)) => format!("progress {progress}"),
            Ok(PluginMessage::Result(PluginResult { outcome, message })) => format!("{} {message:?}", outcome.name()),
            Err(error) => error,
        }
    }

    #[test]
    fn messages_are_read_and_mistakes_named() {
        for (line, expected) in [
            (r#"{"type":"output","text":"a"}"#, r#"output "a\n""#),
            (r#"{"type":"output","text":"a\nb\n"}"#, r#"output "a\nb\n""#),
            (r#" {"type": "progress", "percent": 99.9} "#, "progress 99 %"),
            (r#"{"type":"progress","percent":0,"text":"two\nlines"}"#, "progress 0 %, two lines"),
            (r#"{"type":"progress","text":"reading"}"#, "progress reading"),
            (r#"{"type":"result","outcome":"success"}"#, r#"success """#),
            (r#"{"type":"result","outcome":"failure","message":"no rows"}"#, r#"failure "no rows""#),
            (r#"{"type":"result","outcome":"error","message":null}"#, r#"error """#),
            ("", "it is not JSON: EOF while parsing a value at column 0"),
            ("hello", "it is not JSON: expected value at column 1"),
            (r#"{"type":"output","text":"a"} x"#, "it is not JSON: trailing characters at column 30"),
            ("[1]", "it is not a JSON object"),
            (r#"{"text":"a"}"#, "it has no `type`, such as `output`, `progress` or `result`"),
            (r#"{"type":"ouput"}"#, "`ouput` is not a type of a message: `output`, `progress` or `result`"),
            (r#"{"type":"output"}"#, "`output` needs `text`, which is a string"),
            (r#"{"type":"output","text":"a","level":1}"#, "`output` has no key `level`"),
            (r#"{"type":"progress"}"#, "`progress` needs `percent`, `text` or both"),
            (r#"{"type":"progress","percent":101}"#, "`percent` is not a number from 0 to 100"),
            (r#"{"type":"progress","text":1}"#, "`text` of `progress` is not a string"),
            (
                r#"{"type":"result","outcome":"holds"}"#,
                "`result` needs `outcome`, which is one of `success`, `failure`, `error`",
            ),
            (r#"{"type":"result","outcome":"error","message":1}"#, "`message` of `result` is not a string"),
        ] {
            assert_eq!(shown(PluginKind::Program, line), expected, "{line}");
        }
        assert_eq!(
            shown(PluginKind::Condition, r#"{"type":"result","outcome":"does_not_hold"}"#),
            r#"does_not_hold """#
        );
        assert_eq!(PluginMessage::parse(PluginKind::Program, b"\xff"), Err("it is not valid UTF-8".to_owned()));
    }

    #[test]
    fn long_messages_are_shortened() {
        let line = format!(r#"{{"type":"result","outcome":"error","message":"{}"}}"#, "ö".repeat(2_000));
        let Ok(PluginMessage::Result(found)) = PluginMessage::parse(PluginKind::Program, line.as_bytes()) else {
            panic!("a result");
        };
        assert_eq!(found.message.chars().count(), RESULT_MAX + 1);
    }
}
