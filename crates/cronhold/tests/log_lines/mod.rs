//! Parses the log of a daemon that was started with `--log-format json`. Tests match the names and fields of events,
//! never their messages.

use serde_json::Value;

/// The parsed line, if it is this event and has these fields. Numbers are compared as text.
pub(crate) fn find_event(line: &str, event: &str, fields: &[(&str, &str)]) -> Option<Value> {
    // The error message of a command that fails is not JSON.
    let line: Value = serde_json::from_str(line).ok()?;
    let has_field = |(name, wanted): &(&str, &str)| match &line[*name] {
        Value::String(text) => text == wanted,
        other => {
            let shown = other.to_string();
            shown == *wanted
        }
    };
    (line["event"] == event && fields.iter().all(has_field)).then_some(line)
}
