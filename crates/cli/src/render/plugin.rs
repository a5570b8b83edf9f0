//! Output of `cronhold plugin check`: one line for each event, and the number of problems.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{counted, visible};
use crate::PluginTrialEvent;

/// Prints an event.
pub(crate) fn event(event: &PluginTrialEvent, out: &mut dyn Write) -> io::Result<()> {
    let mut row = |number: &str, kind: &str, text: &str| {
        // The text of an output may have several lines.
        text.split('\n').try_for_each(|line| writeln!(out, "{number:>5}  {kind:<9} {}", visible(line)))
    };
    match event {
        PluginTrialEvent::Started { message } => row("", "started", message.trim_end()),
        PluginTrialEvent::Sent { text } => row("", "sent", text),
        PluginTrialEvent::Message { line, kind, text } => row(&line.to_string(), kind, text),
        PluginTrialEvent::Malformed { line, problem, quote } => {
            row(&line.to_string(), "PROBLEM", &format!("{problem}: {quote}"))
        }
        PluginTrialEvent::Stderr { text } => row("", "stderr", text),
        PluginTrialEvent::Signalled { signal } => row("", "signal", signal),
        PluginTrialEvent::Ended { exit, meaning } => row("", "ended", &format!("{exit}; {meaning}")),
        PluginTrialEvent::Problem { problem } => row("", "PROBLEM", problem),
        PluginTrialEvent::Note { text } => row("", "note", text),
    }
}

/// Prints the result of a check.
pub(crate) fn result(problems: usize, out: &mut dyn Write) -> io::Result<()> {
    match problems {
        0 => writeln!(out, "no problems"),
        count => writeln!(out, "{}", counted(count, "problem")),
    }
}

/// The events as JSON.
pub(crate) fn value(events: &[PluginTrialEvent]) -> Value {
    let problems = events.iter().filter(|event| event.is_problem()).count();
    json!({ "events": events, "problems": problems })
}
