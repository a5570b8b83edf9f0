//! The entries that are published on `/sidejob/log`, and the messages on the channel of a task.

use std::borrow::Cow;

use cronhold_schedule::Instant;

use super::TaskStatus;
use super::item::PortItem;
use super::json::{JsonObject, JsonText};
use super::limits::{BACKTRACE_BYTES_MAX, ERROR_BYTES_MAX};
use super::port::PortAddress;

/// Values of one entry.
const LOGGED_VALUES_MAX: usize = 10_000;
/// Bytes of the values of one entry.
const LOGGED_BYTES_MAX: usize = 512 << 10;

/// Values that were read from ports and written to ports together. Those beyond 10,000 values or 512 KiB are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortLog {
    read: Vec<(PortAddress, Vec<JsonText>)>,
    write: Vec<(PortAddress, Vec<JsonText>)>,
    values: usize,
    bytes: usize,
}

impl PortLog {
    /// Adds a value that was read.
    pub fn add_read(&mut self, port: &PortAddress, data: JsonText) {
        if self.has_room(&data) {
            add(&mut self.read, port, data);
        }
    }

    /// Adds a value that was written.
    pub fn add_write(&mut self, port: &PortAddress, data: JsonText) {
        if self.has_room(&data) {
            add(&mut self.write, port, data);
        }
    }

    /// Adds items that were read, except those whose writer does not want them to be logged.
    pub fn add_read_items(&mut self, port: &PortAddress, items: &[PortItem]) {
        for item in items.iter().filter(|item| item.is_logged()) {
            self.add_read(port, item.data.clone());
        }
    }

    /// Adds items that were written, except those whose writer does not want them to be logged.
    pub fn add_written_items(&mut self, port: &PortAddress, items: &[PortItem]) {
        for item in items.iter().filter(|item| item.is_logged()) {
            self.add_write(port, item.data.clone());
        }
    }

    /// Counts a value, and returns whether the entry can have it.
    fn has_room(&mut self, data: &JsonText) -> bool {
        self.values += 1;
        self.bytes += data.as_str().len();
        self.values <= LOGGED_VALUES_MAX && self.bytes <= LOGGED_BYTES_MAX
    }

    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }

    /// The entry; `None` if nothing was read or written.
    pub fn to_entry(&self, context: &JsonObject, now: Instant) -> Option<JsonText> {
        if self.is_empty() {
            return None;
        }
        let fields = format!(r#""read":[{}],"write":[{}]"#, elements(&self.read), elements(&self.write));
        Some(entry(context, now, &fields))
    }
}

/// One element for each port, in the order of their first use.
fn add(ports: &mut Vec<(PortAddress, Vec<JsonText>)>, port: &PortAddress, data: JsonText) {
    match ports.iter_mut().find(|(known, _)| known == port) {
        Some((_, values)) => values.push(data),
        None => ports.push((port.clone(), vec![data])),
    }
}

fn elements(ports: &[(PortAddress, Vec<JsonText>)]) -> String {
    let element = |(port, data): &(PortAddress, Vec<JsonText>)| {
        let (word, name) = (port.direction.port_word(), JsonText::of_text(port.port.as_str()));
        format!(r#"{{"job":{},"data":{},"{word}":{name}}}"#, port.task, JsonText::list(data))
    };
    ports.iter().map(element).collect::<Vec<_>>().join(",")
}

/// The entry for an error.
pub fn error_entry(context: &JsonObject, now: Instant, error: &str, backtrace: Option<&str>) -> JsonText {
    let mut fields = format!(r#""error":{}"#, JsonText::of_text(&beginning(error, ERROR_BYTES_MAX)));
    if let Some(backtrace) = backtrace.map(|text| beginning(text, BACKTRACE_BYTES_MAX)) {
        fields.push_str(&format!(r#","backtrace":{}"#, JsonText::of_text(&backtrace)));
    }
    entry(context, now, &fields)
}

/// The beginning of a text that is too long.
fn beginning(text: &str, bytes: usize) -> Cow<'_, str> {
    match text.len() > bytes {
        true => {
            let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            Cow::Owned(format!("{}…", &text[..end]))
        }
        false => Cow::Borrowed(text),
    }
}

/// The entry for a text.
pub fn message_entry(context: &JsonObject, now: Instant, message: &str) -> JsonText {
    entry(context, now, &format!(r#""message":{}"#, JsonText::of_text(message)))
}

/// The entry for an object, whose fields replace those of the context.
pub fn object_entry(context: &JsonObject, now: Instant, object: &JsonObject) -> JsonText {
    let context: JsonObject = context
        .iter()
        .filter(|(field, _)| object.get(field).is_none())
        .fold(JsonObject::new(), |all, (field, value)| all.with(field, value.clone()));
    let fields: Vec<String> =
        object.iter().map(|(field, value)| format!("{}:{value}", JsonText::of_text(field))).collect();
    entry(&context, now, &fields.join(","))
}

/// The fields of the context, then the time, then the fields of the entry.
fn entry(context: &JsonObject, now: Instant, fields: &str) -> JsonText {
    let context: String =
        context.iter().map(|(field, value)| format!("{}:{value},", JsonText::of_text(field))).collect();
    let separator = if fields.is_empty() { "" } else { "," };
    let text = format!(r#"{{{context}"timestamp":"{}"{separator}{fields}}}"#, timestamp(now));
    JsonText::parse(&text).expect("parts of JSON make JSON")
}

/// The message about a new status.
pub fn status_message(status: TaskStatus) -> JsonText {
    JsonObject::new().with("status", JsonText::of_text(status.as_str())).to_json()
}

/// The message about a deletion.
pub fn deleted_message() -> JsonText {
    JsonText::parse(r#"{"deleted":true}"#).expect("it is JSON")
}

/// A time as SideJob writes it: UTC with nine digits of fraction.
pub fn timestamp(at: Instant) -> String {
    let text = at.to_string();
    let text = text.trim_end_matches('Z');
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{seconds}.{fraction:0<9}Z")
}
