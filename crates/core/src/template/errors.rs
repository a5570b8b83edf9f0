//! Converts errors of the engine into errors with our messages and their range in the text.

use std::ops::Range;

use cronhold_schedule::TextError;
use cronhold_schedule::text::{did_you_mean, shortened};
use minijinja::{Error, ErrorKind};

use super::{Bindings, TEXT_MAX, VALUES_MAX};

/// The hint for syntax errors in a template.
pub(super) const TEMPLATE_HINT: &str =
    "expressions look like {{ name }}; {% raw %} … {% endraw %} keeps braces as they are";

/// Rejects a text that is too long.
pub(super) fn check_length(what: &str, text: &str) -> Result<(), TextError> {
    if text.len() > TEXT_MAX {
        let message = format!("{what} can have at most {TEXT_MAX} bytes, this one has {}", text.len());
        return Err(TextError::new(0..text.len(), message));
    }
    Ok(())
}

/// Rejects values that are too large to be bound.
pub(super) fn check_values(text: &str, bindings: &Bindings) -> Result<(), TextError> {
    if bindings.bytes() > VALUES_MAX {
        let message = format!("the values bound to a template can have at most {VALUES_MAX} bytes together");
        return Err(TextError::new(0..text.len(), message).hint("pass large values in a file"));
    }
    Ok(())
}

/// The error for a text that cannot be parsed. `what` is what it was parsed as.
pub(super) fn syntax_error(what: &str, text: &str, error: &Error, hint: &str) -> TextError {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    TextError::new(place(text, error), format!("{what}: {detail}")).hint(hint)
}

/// The error for a text that cannot be bound to these values.
pub(super) fn bind_error(text: &str, error: &Error, bindings: &Bindings) -> TextError {
    let at = place(text, error);
    match error.kind() {
        ErrorKind::UndefinedError => undefined(text, at, bindings),
        ErrorKind::OutOfFuel => TextError::new(0..text.len(), "the template takes too long").hint("use shorter loops"),
        kind => {
            let detail = error.detail().map_or_else(|| kind.to_string(), str::to_owned);
            TextError::new(at, detail)
        }
    }
}

fn undefined(text: &str, at: Range<usize>, bindings: &Bindings) -> TextError {
    let expression = &text[at.clone()];
    let error = TextError::new(at, format!("`{}` is not defined", shortened(expression)));
    match did_you_mean(expression, bindings.names()) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint(format!("names are {}", bindings.names().collect::<Vec<_>>().join(", "))),
    }
}

fn place(text: &str, error: &Error) -> Range<usize> {
    let whole = 0..text.len();
    error.range().filter(|at| at.start <= at.end && text.get(at.clone()).is_some()).unwrap_or(whole)
}
