//! Templates: texts in a job that may hold Jinja expressions, bound once when a run is created.
//!
//! A template is checked completely when it is read and costs nothing more until it is bound. It is strict (a name that
//! is not bound is an error, unless the template handles its absence) and bounded in text, work and result.

mod bindings;
mod calendars;
mod dates;
mod environment;
mod errors;
mod expression;
mod names;
mod shape;
mod texts;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use cronhold_schedule::TextError;
use serde::{Serialize, Serializer};

pub use bindings::{Bindings, BoundValue};
use environment::environment;
use errors::{TEMPLATE_HINT, bind_error, check_length, check_values, syntax_error};
pub use expression::Expression;
use names::UsedNames;

/// Longest text in bytes of a template that holds expressions.
pub const TEXT_MAX: usize = 64 * 1024;

/// Largest total size of all bound values in bytes.
pub const VALUES_MAX: usize = 64 * 1024;

/// Longest result in bytes.
pub const RESULT_MAX: usize = 1024 * 1024;

/// A text that may hold expressions. Two templates are equal if their texts are equal and both are literal or both are
/// live.
#[derive(Clone)]
pub struct Template(TemplateForm);

/// A job has many templates, most without expressions. A literal one needs no more memory than its text.
#[derive(Clone)]
enum TemplateForm {
    /// Has no expressions.
    Literal(Box<str>),
    /// Has expressions. Invariant: the text was checked, and the names are those that it uses.
    Live(Arc<LiveTemplate>),
}

struct LiveTemplate {
    text: Box<str>,
    names: UsedNames,
}

impl Template {
    /// Parses a template. Everything that does not depend on bound values is checked here.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if !shape::has_expressions(text) {
            return Ok(Self::literal(text));
        }
        check_length("a template", text)?;
        let parsed = environment().template_from_str(text);
        let parsed = parsed.map_err(|error| syntax_error("template", text, &error, TEMPLATE_HINT))?;
        let shape = shape::check(text)?;
        // A text that is nothing but one raw part is literal.
        if let Some(inside) = shape::raw_alone(text) {
            return Ok(Self::literal(inside));
        }
        let names = UsedNames::new(parsed.undeclared_variables(false), &shape);
        Ok(Self(TemplateForm::Live(Arc::new(LiveTemplate { text: text.into(), names }))))
    }

    /// A literal text, even if it looks like a template.
    pub fn literal(text: impl Into<String>) -> Self {
        Self(TemplateForm::Literal(text.into().into_boxed_str()))
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        match &self.0 {
            TemplateForm::Literal(text) => text,
            TemplateForm::Live(live) => &live.text,
        }
    }

    /// Whether it has no expressions and is the same for all runs.
    pub fn is_literal(&self) -> bool {
        matches!(self.0, TemplateForm::Literal(_))
    }

    /// Names that it uses, other than functions and its own loop variables.
    pub fn names(&self) -> BTreeSet<&str> {
        self.live().map(|live| live.names.all()).unwrap_or_default()
    }

    /// Names that must be bound: those that it uses without a default or an `is defined` test.
    pub fn required_names(&self) -> BTreeSet<&str> {
        self.live().map(|live| live.names.required()).unwrap_or_default()
    }

    /// The range of the first use of a name; `None` if the text does not use it.
    pub fn place_of(&self, name: &str) -> Option<Range<usize>> {
        self.live().and_then(|live| live.names.place_of(name))
    }

    /// The text with all expressions replaced by their values.
    pub fn bind(&self, bindings: &Bindings) -> Result<String, TextError> {
        let text = self.text();
        if self.is_literal() {
            return Ok(text.to_owned());
        }
        check_values(text, bindings)?;
        let parsed = environment().template_from_str(text);
        let parsed = parsed.map_err(|error| syntax_error("template", text, &error, TEMPLATE_HINT))?;
        let mut result = LimitedOutput::default();
        let whole = 0..text.len();
        match parsed.render_captured_to(bindings.value(), &mut result) {
            Ok(_) => String::from_utf8(result.bytes).map_err(|_| TextError::new(whole, "the result is not UTF-8")),
            Err(_) if result.is_over => {
                Err(TextError::new(whole, format!("the result has more than {RESULT_MAX} bytes")))
            }
            Err(error) => Err(bind_error(text, &error, bindings)),
        }
    }

    fn live(&self) -> Option<&LiveTemplate> {
        match &self.0 {
            TemplateForm::Literal(_) => None,
            TemplateForm::Live(live) => Some(live),
        }
    }

    /// What equality, order and hash depend on. Names follow from the text.
    fn key(&self) -> (&str, bool) {
        (self.text(), self.is_literal())
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Template {}

impl PartialOrd for Template {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Template {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Template {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.text(), f)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// A buffer for the result that fails when the result exceeds its limit.
#[derive(Debug, Default)]
struct LimitedOutput {
    bytes: Vec<u8>,
    is_over: bool,
}

impl io::Write for LimitedOutput {
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

#[cfg(test)]
mod guide;
#[cfg(test)]
mod tests;
