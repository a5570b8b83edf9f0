//! JSON values as text. A value stays as it was written until a worker reads it into a type of its own, so that large
//! integers, empty lists and the order of keys survive.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// One JSON value as text on one line. Cheap to clone.
///
/// Invariant: the text is valid, and [`JsonText::value`] can read it. Equality compares the text;
/// [`JsonText::is_same_value`] compares what it means.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Parses a text. White space between its parts is removed.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        match serde_json::from_str::<Value>(text) {
            Ok(_) => Ok(Self(without_blanks(text).into())),
            Err(error) => {
                let message = format!("`{}` is not a JSON value: {error}", shortened(text));
                Err(TextError::new(0..text.len(), message))
            }
        }
    }

    /// The JSON of a Rust value; an error if JSON cannot express it, such as a map whose keys are not texts.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, TextError> {
        let failed = |error: serde_json::Error| TextError::new(0..0, format!("JSON cannot express the value: {error}"));
        Self::parse(&serde_json::to_string(value).map_err(failed)?)
    }

    /// The JSON of a text.
    pub fn of_text(text: &str) -> Self {
        Self(serde_json::to_string(text).expect("any text can be JSON").into())
    }

    /// The JSON of a number.
    pub fn of_number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// `true` or `false`.
    pub fn of_bool(value: bool) -> Self {
        Self(value.to_string().into())
    }

    /// `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// A list of values.
    pub fn list<'a>(values: impl IntoIterator<Item = &'a Self>) -> Self {
        let values: Vec<&str> = values.into_iter().map(Self::as_str).collect();
        Self(format!("[{}]", values.join(",")).into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).expect("the text was read when it was made")
    }

    /// Reads the value into a type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, TextError> {
        serde_json::from_str(&self.0)
            .map_err(|error| TextError::new(0..self.0.len(), format!("`{}`: {error}", shortened(&self.0))))
    }

    /// Whether both texts have the same meaning: `1` and ` 1`, or objects whose keys are in another order.
    pub fn is_same_value(&self, other: &Self) -> bool {
        self.0 == other.0 || self.value() == other.value()
    }
}

/// Removes white space outside of strings from a valid text.
fn without_blanks(text: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    text.chars()
        .filter(|sign| {
            let is_blank = !in_string && matches!(sign, ' ' | '\t' | '\n' | '\r');
            match sign {
                '"' if !is_escaped => in_string = !in_string,
                _ => {}
            }
            is_escaped = in_string && *sign == '\\' && !is_escaped;
            !is_blank
        })
        .collect()
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As the value itself, not as a text.
impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(serde::de::Error::custom)
    }
}

/// A JSON object by field, such as the context of an item. Fields are in the order of their names.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JsonObject(BTreeMap<String, JsonText>);

impl JsonObject {
    /// An object without fields.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Parses a JSON object.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let error =
            |error| TextError::new(0..text.len(), format!("`{}` is not a JSON object: {error}", shortened(text)));
        serde_json::from_str(text).map(Self).map_err(error)
    }

    /// This object with a field.
    #[must_use]
    pub fn with(mut self, field: &str, value: JsonText) -> Self {
        self.0.insert(field.to_owned(), value);
        self
    }

    /// This object with the fields of another, which replace equal ones.
    #[must_use]
    pub fn merged(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().map(|(field, value)| (field.clone(), value.clone())));
        self
    }

    /// The value of a field.
    pub fn get(&self, field: &str) -> Option<&JsonText> {
        self.0.get(field)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of the fields and their values, without punctuation.
    pub fn written_bytes(&self) -> usize {
        self.iter().map(|(field, value)| field.len() + value.as_str().len()).sum()
    }

    /// The fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &JsonText)> {
        self.0.iter().map(|(field, value)| (field.as_str(), value))
    }

    /// The object as JSON.
    pub fn to_json(&self) -> JsonText {
        let mut text = String::from("{");
        for (index, (field, value)) in self.0.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { "," });
            text.push_str(JsonText::of_text(field).as_str());
            text.push(':');
            text.push_str(value.as_str());
        }
        text.push('}');
        JsonText(text.into())
    }
}

impl fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_json().as_str())
    }
}
