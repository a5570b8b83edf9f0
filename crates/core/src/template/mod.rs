//! Templates: texts in a job that may hold Jinja expressions, bound once when a run is created.
//!
//! A template is checked completely when it is read and costs nothing more until it is bound. It is strict (a name that
//! is not bound is a mistake, unless the template says what to do without it) and bounded in text, work and result.

mod bindings;
mod calendars;
mod dates;
mod environment;
mod shape;
mod texts;

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use cronhold_schedule::TextError;
use cronhold_schedule::text::{did_you_mean, shortened};
use minijinja::{Error, ErrorKind};
use serde::{Serialize, Serializer};

pub use bindings::{Bindings, Bound};
use environment::{FUNCTIONS, environment};

/// Longest text of a template in bytes, when it holds expressions.
pub const TEXT_MAX: usize = 64 * 1024;

/// Most bytes that all bound values together may have.
pub const VALUES_MAX: usize = 64 * 1024;

/// Longest result in bytes.
pub const RESULT_MAX: usize = 1024 * 1024;

/// A text that may hold expressions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Template {
    text: String,
    /// Invariant: only true for a text that was checked.
    live: bool,
}

impl Template {
    /// Reads a template. Everything that does not depend on bound values is checked here.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if !shape::has_expressions(text) {
            return Ok(Self::literal(text));
        }
        if text.len() > TEXT_MAX {
            let message = format!("a template can have at most {TEXT_MAX} bytes, this one has {}", text.len());
            return Err(TextError::new(0..text.len(), message));
        }
        environment().template_from_str(text).map_err(|error| syntax_error(text, &error))?;
        shape::check(text)?;
        Ok(Self { text: text.to_owned(), live: true })
    }

    /// A text that stands for itself, even if it looks like a template.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), live: false }
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is the same for all runs.
    pub fn is_literal(&self) -> bool {
        !self.live
    }

    /// Names that it uses, other than functions and its own loop variables.
    pub fn names(&self) -> BTreeSet<String> {
        if !self.live {
            return BTreeSet::new();
        }
        let Ok(parsed) = environment().template_from_str(&self.text) else {
            return BTreeSet::new();
        };
        let shape = shape::check(&self.text).unwrap_or_default();
        let value = |name: &String| shape.plain.contains(name) || !FUNCTIONS.contains(&name.as_str());
        parsed.undeclared_variables(false).into_iter().filter(value).collect()
    }

    /// Names that must be bound: those it uses without saying what to do when they are not there.
    pub fn required_names(&self) -> BTreeSet<String> {
        let optional = if self.live { shape::check(&self.text).unwrap_or_default().optional } else { BTreeSet::new() };
        self.names().into_iter().filter(|name| !optional.contains(name)).collect()
    }

    /// The text with all expressions replaced by their values.
    pub fn bind(&self, bindings: &Bindings) -> Result<String, TextError> {
        if !self.live {
            return Ok(self.text.clone());
        }
        let whole = 0..self.text.len();
        if bindings.bytes() > VALUES_MAX {
            let message = format!("the values bound to a template can have at most {VALUES_MAX} bytes together");
            return Err(TextError::new(whole, message).hint("pass large values in a file"));
        }
        let parsed = environment().template_from_str(&self.text).map_err(|error| syntax_error(&self.text, &error))?;
        let mut result = Limited::default();
        match parsed.render_captured_to(bindings.value(), &mut result) {
            Ok(_) => String::from_utf8(result.bytes).map_err(|_| TextError::new(whole, "the result is not UTF-8")),
            Err(_) if result.is_over => {
                Err(TextError::new(whole, format!("the result has more than {RESULT_MAX} bytes")))
            }
            Err(error) => Err(bind_error(&self.text, &error, bindings)),
        }
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// A result that stops growing at its limit.
#[derive(Debug, Default)]
struct Limited {
    bytes: Vec<u8>,
    is_over: bool,
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > RESULT_MAX {
            self.is_over = true;
            return Err(io::Error::other("the result is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn place(text: &str, error: &Error) -> std::ops::Range<usize> {
    let whole = 0..text.len();
    error.range().filter(|at| at.start <= at.end && text.get(at.clone()).is_some()).unwrap_or(whole)
}

fn syntax_error(text: &str, error: &Error) -> TextError {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    TextError::new(place(text, error), format!("template: {detail}"))
        .hint("expressions look like {{ name }}; {% raw %} … {% endraw %} keeps braces as they are")
}

fn bind_error(text: &str, error: &Error, bindings: &Bindings) -> TextError {
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

fn undefined(text: &str, at: std::ops::Range<usize>, bindings: &Bindings) -> TextError {
    let expression = &text[at.clone()];
    let error = TextError::new(at, format!("`{}` is not defined", shortened(expression)));
    match did_you_mean(expression, bindings.names()) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint(format!("names are {}", bindings.names().collect::<Vec<_>>().join(", "))),
    }
}

#[cfg(test)]
mod tests;
