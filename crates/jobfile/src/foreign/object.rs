//! A JSON object of another system. All of its fields are kept, and known fields are read one by one. Each mistake is
//! reported with the path of its field, and reading continues, so that one reading finds all mistakes.

use std::fmt;

use cronhold_core::Job;
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use serde_json::{Map, Value};

use super::FieldMistake;
use crate::write_job;

/// Largest size of a form, in bytes.
const FORM_BYTES_MAX: usize = 1 << 20;

/// A foreign form with all its fields, known or not. It prints as JSON.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForeignForm(pub Map<String, Value>);

impl ForeignForm {
    /// Parses the JSON of a form with any fields.
    pub fn parse(text: &str) -> Result<Self, FieldMistake> {
        let whole = |message: String, hint: &str| FieldMistake {
            path: String::new(),
            message,
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
        };
        if text.len() > FORM_BYTES_MAX {
            return Err(whole(format!("it has {} bytes, at most {FORM_BYTES_MAX} are allowed", text.len()), ""));
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(other) => Err(whole(format!("a job must be a JSON object, but is {}", found(&other)), "")),
            Err(error) => Err(whole(format!("it is not JSON: {error}"), "a job is one JSON object such as {…}")),
        }
    }

    /// The form as a JSON value.
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// The object under a key, inserted if it does not exist.
    pub fn object(&mut self, key: &str) -> &mut Map<String, Value> {
        let value = self.0.entry(key).or_insert_with(|| Value::Object(Map::new()));
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        value.as_object_mut().expect("it is an object")
    }
}

impl fmt::Display for ForeignForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_value())
    }
}

/// A value and its path.
#[derive(Debug, Clone, Copy)]
pub struct FormField<'v> {
    pub parent: &'static str,
    pub key: &'static str,
    pub value: &'v Value,
}

/// Mistakes found so far.
#[derive(Debug, Default)]
pub struct FormMistakes(pub Vec<FieldMistake>);

impl FormMistakes {
    /// Reports a mistake, and returns `None` for the reader to return.
    pub fn report<T>(&mut self, path: String, message: impl Into<String>, hint: &str) -> Option<T> {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        self.0.push(FieldMistake { path, message: message.into(), hint });
        None
    }

    /// The result of a parser for a field's text; a mistake is reported.
    pub fn parsed<T>(&mut self, path: String, result: Result<T, TextError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => self.report(path, error.message, error.hint.as_deref().unwrap_or_default()),
        }
    }

    /// A required field. `null` counts as absent.
    pub fn required<'v>(
        &mut self,
        map: &'v Map<String, Value>,
        parent: &'static str,
        key: &'static str,
        hint: &str,
    ) -> Option<FormField<'v>> {
        let field = optional(map, parent, key);
        if field.is_none() {
            self.report::<()>(path(parent, key), format!("`{key}` is missing"), hint);
        }
        field
    }

    pub fn object<'v>(&mut self, field: FormField<'v>) -> Option<&'v Map<String, Value>> {
        match field.value {
            Value::Object(map) => Some(map),
            _ => self.wrong(field, "an object", ""),
        }
    }

    pub fn text<'v>(&mut self, field: FormField<'v>, hint: &str) -> Option<&'v str> {
        match field.value {
            Value::String(text) => Some(text),
            _ => self.wrong(field, "a text", hint),
        }
    }

    /// A text that is not empty.
    pub fn some_text<'v>(&mut self, field: FormField<'v>, hint: &str) -> Option<&'v str> {
        let text = self.text(field, hint)?;
        if text.trim().is_empty() {
            return self.report(field.path(), format!("`{}` is empty", field.key), hint);
        }
        Some(text)
    }

    pub fn bool(&mut self, field: FormField<'_>) -> Option<bool> {
        match field.value {
            Value::Bool(value) => Some(*value),
            _ => self.wrong(field, "true or false", ""),
        }
    }

    /// Whole seconds within limits, as a number or as the text of one.
    pub fn seconds(&mut self, field: FormField<'_>, least: u64, most: u64) -> Option<u64> {
        let seconds = match field.value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match seconds {
            Some(seconds) if (least..=most).contains(&seconds) => Some(seconds),
            Some(_) => self.report(field.path(), format!("`{}` must be {least} to {most} seconds", field.key), ""),
            None => self.wrong(field, "a whole number of seconds", "such as 10"),
        }
    }

    pub fn wrong<T>(&mut self, field: FormField<'_>, expected: &str, hint: &str) -> Option<T> {
        let message = format!("`{}` must be {expected}, but is {}", field.key, found(field.value));
        self.report(field.path(), message, hint)
    }
}

impl FormField<'_> {
    pub fn path(&self) -> String {
        path(self.parent, self.key)
    }
}

/// An optional field. `null` counts as absent, because some programs write absent fields as `null`.
pub fn optional<'v>(map: &'v Map<String, Value>, parent: &'static str, key: &'static str) -> Option<FormField<'v>> {
    map.get(key).filter(|value| !value.is_null()).map(|value| FormField { parent, key, value })
}

pub fn path(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

/// What a value is called in messages.
pub fn found(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => format!("`{value}`"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text `{}`", shortened(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Keys of a job file in which two jobs differ, in order.
pub fn differences(job: &Job, other: &Job) -> Vec<String> {
    let (Value::Object(job), Value::Object(other)) = (write_job(job), write_job(other)) else {
        return Vec::new();
    };
    let mut keys: Vec<String> =
        job.keys().chain(other.keys()).filter(|key| job.get(*key) != other.get(*key)).cloned().collect();
    keys.sort();
    keys.dedup();
    keys
}
