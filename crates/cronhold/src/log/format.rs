//! Formats events as lines: text for people, JSON for programs. A message cannot break the line format, because line
//! ends in it are escaped.

use std::fmt::{Debug, Write as _};
use std::io::Write as _;

use cronhold_cli::LogFormat;
use cronhold_schedule::Instant;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use crate::clock;

/// The field that holds the stable name of an event.
const EVENT: &str = "event";
/// The field that `tracing` puts the message into.
const MESSAGE: &str = "message";
/// The name of events that do not give one.
pub(super) const UNNAMED_EVENT: &str = "other";
const RESET: &str = "\x1b[0m";
const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";

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
        let mut fields = FieldWriter::new(self);
        event.record(&mut fields);
        self.line(*metadata.level(), metadata.target(), &fields)
    }

    /// The line that reports how many lines were dropped.
    pub(super) fn dropped_lines(self, count: u64) -> Line {
        let mut fields = FieldWriter::new(self);
        fields.event.push_str("log_lines_dropped");
        fields.message.push_str("log lines were dropped, because they came faster than they could be written");
        fields.put("count", &count.to_string(), true);
        self.line(Level::WARN, module_path!(), &fields)
    }

    fn line(self, level: Level, target: &str, fields: &FieldWriter) -> Line {
        let event = if fields.event.is_empty() { UNNAMED_EVENT } else { &fields.event };
        let mut rest = String::with_capacity(96 + event.len() + fields.message.len() + fields.rest.len());
        match self.format {
            LogFormat::Text => {
                let (colour, bold, reset) = if self.colours { (colour_of(level), BOLD, RESET) } else { ("", "", "") };
                let _ = write!(rest, " {colour}{level:>5}{reset} {bold}{event}{reset} ");
                push_printable(&mut rest, &fields.message);
                rest.push_str(&fields.rest);
            }
            LogFormat::Json => {
                let _ = write!(rest, ",\"level\":\"{}\",\"target\":", name_of(level));
                push_json(&mut rest, target);
                rest.push_str(",\"event\":");
                push_json(&mut rest, event);
                rest.push_str(",\"message\":");
                push_json(&mut rest, &fields.message);
                rest.push_str(&fields.rest);
                rest.push('}');
            }
        }
        rest.push('\n');
        Line { at: clock::now(), format: self, rest }
    }
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

/// Collects the fields of an event. All but its name and message are written as they will stand in the line.
struct FieldWriter {
    format: LineFormat,
    event: String,
    message: String,
    rest: String,
}

impl FieldWriter {
    fn new(format: LineFormat) -> Self {
        Self { format, event: String::new(), message: String::new(), rest: String::new() }
    }

    /// Takes a field. A plain value is written without quotes in JSON.
    fn put(&mut self, name: &str, value: &str, is_plain: bool) {
        match (name, self.format.format) {
            (EVENT, _) => self.event.push_str(value),
            (MESSAGE, _) => self.message.push_str(value),
            (_, LogFormat::Text) => {
                let (dim, reset) = if self.format.colours { (DIM, RESET) } else { ("", "") };
                let _ = write!(self.rest, " {dim}{name}{reset}=");
                let needs_quotes = |sign: char| sign.is_whitespace() || sign.is_control() || sign == '"';
                if value.is_empty() || value.contains(needs_quotes) {
                    let _ = write!(self.rest, "{value:?}");
                } else {
                    self.rest.push_str(value);
                }
            }
            (_, LogFormat::Json) => {
                self.rest.push(',');
                push_json(&mut self.rest, name);
                self.rest.push(':');
                if is_plain { self.rest.push_str(value) } else { push_json(&mut self.rest, value) }
            }
        }
    }
}

impl Visit for FieldWriter {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value, false);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), &value.to_string(), true);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), &value.to_string(), true);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), if value { "true" } else { "false" }, true);
    }

    /// Values that are given by `%` and `?` come here, and messages.
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            MESSAGE => {
                let _ = write!(self.message, "{value:?}");
            }
            name => self.put(name, &format!("{value:?}"), false),
        }
    }
}

/// Escapes control characters, so that a message cannot start a new line or change the colours of a terminal.
fn push_printable(to: &mut String, text: &str) {
    for sign in text.trim_end().chars() {
        if sign.is_control() { to.extend(sign.escape_default()) } else { to.push(sign) }
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
