//! Lines of a daemon's log that was started with `--log-format json`. Tests look for the names and fields of events, never
//! for their messages.

use serde_json::Value;

/// The line, if it is this event and has these fields. Numbers are compared as they are written.
pub(crate) fn find_event(line: &str, event: &str, fields: &[(&str, &str)]) -> Option<Value> {
    // What a command that fails says on standard error is not JSON.
    let line: Value = serde_json::from_str(line).ok()?;
    let has_field = |(name, wanted): &(&str, &str)| match &line[*name] {
        Value::String(text) => text == wanted,
        other => other.to_string() == *wanted,
    };
    (line["event"] == event && fields.iter().all(has_field)).then_some(line)
}
