//! Rules for names that the writer of a file chooses, such as params and environment variables.

use cronhold_core::args::{check_param_name, is_identifier};
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;

use super::reader::{JobReader, NamedNode};
use crate::yaml::{YamlEntry, YamlValue};

pub(crate) type NameCheck = fn(&str) -> Result<(), TextError>;

impl JobReader<'_> {
    /// Entries of a map with names as keys.
    pub(crate) fn names<'n>(
        &mut self,
        item: NamedNode<'n>,
        check: NameCheck,
        example: &str,
    ) -> Option<&'n [YamlEntry]> {
        let YamlValue::Map(entries) = &item.node.value else {
            return self.wrong(item, "a map", example);
        };
        for entry in entries {
            if let Err(error) = check(&entry.key) {
                let mistake = self.mistake(&entry.key_span, error.message);
                self.report(match error.hint {
                    Some(hint) => mistake.hint(hint),
                    None => mistake,
                });
            }
        }
        Some(entries)
    }
}

/// Params, and the args that are given to them.
pub(crate) fn param(name: &str) -> Result<(), TextError> {
    check_param_name(name)
}

/// Variables of an environment.
pub(crate) fn variable(name: &str) -> Result<(), TextError> {
    identifier(name, "a variable")
}

/// Settings of a plug-in.
pub(crate) fn setting(name: &str) -> Result<(), TextError> {
    identifier(name, "a setting")
}

/// Headers of a request.
pub(crate) fn header(name: &str) -> Result<(), TextError> {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let valid = !name.is_empty() && name.bytes().all(is_sign);
    rule(valid, name, "a header", "names of headers are letters, digits and signs such as `-`, without blanks")
}

/// Ports of a task.
pub(crate) fn port(name: &str) -> Result<(), TextError> {
    rule(!name.is_empty(), name, "a port", "write for example `in`")
}

fn identifier(name: &str, what: &str) -> Result<(), TextError> {
    rule(is_identifier(name), name, what, "names are letters, digits and `_`, and do not begin with a digit")
}

fn rule(valid: bool, name: &str, what: &str, hint: &str) -> Result<(), TextError> {
    if valid {
        return Ok(());
    }
    Err(TextError::new(0..name.len(), format!("`{}` cannot be the name of {what}", shortened(name))).hint(hint))
}
