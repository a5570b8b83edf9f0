//! Items: what the lists and the defaults of ports hold.

use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use serde::{Deserialize, Serialize};

use super::json::{JsonObject, JsonText};

/// A value in a port, with the context in which it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortItem {
    pub data: JsonText,
    /// Who wrote it, such as the task and the channel; `None` if it was written outside of any context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<JsonObject>,
    /// Options of the group in which it was written; `None` if it was written outside of any group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<JsonObject>,
}

#[derive(Deserialize)]
struct ItemForm {
    data: JsonText,
    context: Option<JsonText>,
    options: Option<JsonText>,
}

impl PortItem {
    /// An item without context and options.
    pub const fn new(data: JsonText) -> Self {
        Self { data, context: None, options: None }
    }

    /// This item, written in a context.
    #[must_use]
    pub fn with_context(self, context: JsonObject) -> Self {
        Self { context: Some(context), ..self }
    }

    /// This item, written in a group with options.
    #[must_use]
    pub fn with_options(self, options: JsonObject) -> Self {
        Self { options: Some(options), ..self }
    }

    /// Parses the form that is stored: an object with `data`, and possibly `context` and `options`.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let form: ItemForm = serde_json::from_str(text).map_err(|error| {
            TextError::new(0..text.len(), format!("`{}` is not an item of a port: {error}", shortened(text)))
        })?;
        let object = |part: Option<JsonText>| part.map(|part| JsonObject::parse(part.as_str())).transpose();
        Ok(Self { data: form.data, context: object(form.context)?, options: object(form.options)? })
    }

    /// The form that is stored.
    pub fn to_json(&self) -> String {
        let mut text = format!(r#"{{"data":{}"#, self.data);
        for (name, part) in [("context", &self.context), ("options", &self.options)] {
            if let Some(part) = part {
                text.push_str(&format!(r#","{name}":{}"#, part.to_json()));
            }
        }
        text.push('}');
        text
    }

    /// Bytes of the context and the options.
    pub fn label_bytes(&self) -> usize {
        self.context.iter().chain(&self.options).map(JsonObject::written_bytes).sum()
    }

    /// Whether a read of this item is logged. Older writers use `disable_log`.
    pub fn is_logged(&self) -> bool {
        let Some(options) = &self.options else { return true };
        let is = |name: &str, value: &str| options.get(name).is_some_and(|found| found.as_str() == value);
        !is("log", "false") && !is("disable_log", "true")
    }
}
