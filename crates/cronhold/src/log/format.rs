//! Formats events as lines. JSON, for programs, has everything. Text, for people, has the message and those fields that
//! the message does not mention. A message cannot break the line format, because line ends in it are escaped.

use std::fmt::{Debug, Write as _};
use std::io::Write as _;

use cronhold_cli::LogFormat;
use cronhold_schedule::Instant;
use cronhold_schedule::text::{is_deceptive, visible};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use crate::clock;

/// The field that holds the stable name of an event.
const EVENT: &str = "event";
/// The field that `tracing` puts the message into.
const MESSAGE: &str = "message";
/// The ends of names of fields that hold a duration as a number. Messages have them in a readable form.
const DURATIONS: [&str; 2] = ["_ms", "_us"];
/// The name of events that do not give one.
pub(super) const UNNAMED_EVENT: &str = "other";
const RESET: &str = "\x1b[0m";
const DIM: &str = "\x1b[2m";

/// Turns events into lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineFormat {
    format: LogFormat,
    /// Whether text has escape sequences for colours.
    colours: bool,
}

/// A line without its time, which the thread that writes it puts in front.
#[derive(Debug)]
pub(super) struct Line {
    at: Instant,
    format: LineFormat,
    /// The rest of the line, with its end.
    rest: String,
}

impl LineFormat {
    pub(super) fn new(format: LogFormat, colours: bool) -> Self {
        Self { format, colours }
    }

    /// The line of an event that happens now.
    pub(super) fn format(self, event: &Event<'_>) -> Line {
        let metadata = event.metadata();
        let mut fields = EventFields::default();
        event.record(&mut fields);
        self.line(*metadata.level(), metadata.target(), &fields)
    }

    /// The line that reports how many lines were dropped.
    pub(super) fn dropped_lines(self, count: u64) -> Line {
        let mut fields = EventFields::default();
        fields.put(EVENT, "log_lines_dropped".to_owned(), false);
        let message = format!("{count} log lines were dropped, because they came faster than they could be written");
        fields.put(MESSAGE, message, false);
        fields.put("count", count.to_string(), true);
        self.line(Level::WARN, module_path!(), &fields)
    }

    fn line(self, level: Level, target: &str, fields: &EventFields) -> Line {
        let mut rest = String::with_capacity(192 + fields.message.len());
        match self.format {
            LogFormat::Text => self.push_text(&mut rest, level, fields),
            LogFormat::Json => push_object(&mut rest, level, target, fields),
        }
        rest.push('\n');
        Line { at: clock::now(), format: self, rest }
    }

    fn push_text(self, line: &mut String, level: Level, fields: &EventFields) {
        let (colour, dim, reset) = if self.colours { (colour_of(level), DIM, RESET) } else { ("", "", "") };
        let _ = write!(line, " {colour}{level:>5}{reset} ");
        // A message cannot start a new line, control a terminal or deceive its reader.
        line.push_str(&visible(fields.message.trim_end()));
        for (name, value, _) in &fields.others {
            if DURATIONS.iter().any(|end| name.ends_with(end)) || fields.message.contains(value.as_str()) {
                continue;
            }
            let _ = write!(line, " {dim}{name}={reset}");
            let needs_quotes =
                |sign: char| sign.is_whitespace() || sign.is_control() || is_deceptive(sign) || sign == '"';
            if value.contains(needs_quotes) {
                line.push_str(&visible(&format!("{value:?}")));
            } else {
                line.push_str(value);
            }
        }
    }
}

/// Writes all but the time and the brace before it.
fn push_object(line: &mut String, level: Level, target: &str, fields: &EventFields) {
    let _ = write!(line, ",\"level\":\"{}\",\"target\":", name_of(level));
    push_json(line, target);
    line.push_str(",\"event\":");
    push_json(line, if fields.event.is_empty() { UNNAMED_EVENT } else { &fields.event });
    line.push_str(",\"message\":");
    push_json(line, &fields.message);
    for (name, value, is_plain) in &fields.others {
        line.push(',');
        push_json(line, name);
        line.push(':');
        if *is_plain { line.push_str(value) } else { push_json(line, value) }
    }
    line.push('}');
}

impl Line {
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        let second = Instant::from_secs(self.at.secs()).to_string();
        let (second, millis) = (second.trim_end_matches('Z'), self.at.millis().rem_euclid(1_000));
        let (before, after) = match (self.format.format, self.format.colours) {
            (LogFormat::Text, true) => (DIM, RESET),
            (LogFormat::Text, false) => ("", ""),
            (LogFormat::Json, _) => ("{\"time\":\"", "\""),
        };
        let _ = write!(bytes, "{before}{second}.{millis:03}Z{after}");
        bytes.extend_from_slice(self.rest.as_bytes());
    }
}

/// The fields of an event.
#[derive(Default)]
struct EventFields {
    /// The stable name; empty if the event has none.
    event: String,
    message: String,
    /// Name and value of the other fields, and whether JSON has the value without quotes.
    others: Vec<(&'static str, String, bool)>,
}

impl EventFields {
    fn put(&mut self, name: &'static str, value: String, is_plain: bool) {
        match name {
            EVENT => self.event = value,
            MESSAGE => self.message = value,
            _ => self.others.push((name, value, is_plain)),
        }
    }
}

impl Visit for EventFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value.to_owned(), false);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.to_string(), true);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.to_string(), true);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.to_string(), true);
    }

    /// Values that are given by `%` and `?` come here, and messages.
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field.name(), format!("{value:?}"), false);
    }
}

fn push_json(to: &mut String, text: &str) {
    // Text can always be written as JSON.
    to.push_str(&serde_json::to_string(text).unwrap_or_else(|_| "null".to_owned()));
}

fn name_of(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

fn colour_of(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}
