//! The parameters of a URL: `?name=value&name=value`.

use std::fmt::{self, Display};
use std::time::Duration;

use cronhold_schedule::TextError;
use cronhold_schedule::text::{did_you_mean, shortened};

use super::{as_span, invalid_url, unescape};

/// The parameters of a URL in their order. A store takes those that it knows by name, and rejects the rest.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct UrlParams(Vec<(String, String)>);

impl UrlParams {
    /// Reads the part of a URL after the `?`. Each name may occur once.
    pub fn read(query: &str) -> Result<Self, TextError> {
        let mut params: Vec<(String, String)> = Vec::new();
        for param in query.split('&').filter(|param| !param.is_empty()) {
            let (name, value) = param.split_once('=').unwrap_or((param, ""));
            if params.iter().any(|(other, _)| other == name) {
                return Err(invalid_url(format!("`{}` occurs twice", shortened(name))));
            }
            params.push((name.to_owned(), unescape(value)?));
        }
        Ok(Self(params))
    }

    /// Removes a parameter and returns its value.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let index = self.0.iter().position(|(other, _)| other == name)?;
        Some(self.0.remove(index).1)
    }

    /// The names of the remaining parameters.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// The remaining parameters: name and value.
impl IntoIterator for UrlParams {
    type Item = (String, String);
    type IntoIter = std::vec::IntoIter<(String, String)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Shows only names, because a value may be a password.
impl fmt::Debug for UrlParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// The error for an unknown parameter; `known` are the names that exist.
pub fn unknown_param(name: &str, known: &[&str]) -> TextError {
    let error = invalid_url(format!("unknown parameter `{}`", shortened(name)));
    match did_you_mean(name, known.iter().copied()) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint(format!("there are {}", known.join(", "))),
    }
}

/// Parameters as a URL shows them: those that differ from their defaults, in the order of the documentation.
#[derive(Debug, Default)]
pub struct PrintedParams(Vec<String>);

impl PrintedParams {
    /// Adds a parameter. The caller has encoded the value.
    pub fn add(&mut self, name: &str, value: impl Display) {
        self.0.push(format!("{name}={value}"));
    }

    /// Adds a number unless it is the default.
    pub fn add_number(&mut self, name: &str, number: u64, default: u64) {
        if number != default {
            self.add(name, number);
        }
    }

    /// Adds a span of time unless it is the default.
    pub fn add_span(&mut self, name: &str, span: Duration, default: Duration) {
        if span != default {
            self.add(name, as_span(span).to_string().replace(' ', ""));
        }
    }
}

/// With the `?`; empty if there is no parameter.
impl Display for PrintedParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "?{}", self.0.join("&")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_are_taken_by_name() {
        let mut params = UrlParams::read("b=%20x&a&&c=1").expect("valid");
        assert_eq!(format!("{params:?}"), r#"{"b", "a", "c"}"#);
        assert_eq!(params.take("a").as_deref(), Some(""));
        assert_eq!(params.take("a"), None);
        assert_eq!(params.take("b").as_deref(), Some(" x"));
        assert_eq!(params.into_iter().collect::<Vec<_>>(), [("c".to_owned(), "1".to_owned())]);
        let twice = UrlParams::read("a=1&a=2").expect_err("it occurs twice").to_string();
        assert_eq!(twice, "`a` occurs twice");
    }

    #[test]
    fn unknown_parameter_has_a_suggestion() {
        let known = ["timeout", "ca"];
        assert_eq!(unknown_param("timout", &known).to_string(), "unknown parameter `timout` (did you mean `timeout`?)");
        assert_eq!(unknown_param("xyz", &known).to_string(), "unknown parameter `xyz` (there are timeout, ca)");
    }

    #[test]
    fn defaults_are_not_printed() {
        let mut printed = PrintedParams::default();
        printed.add_number("lines", 10, 10);
        printed.add_span("timeout", Duration::from_secs(2), Duration::from_secs(2));
        assert_eq!(printed.to_string(), "");
        printed.add_number("lines", 3, 10);
        printed.add_span("timeout", Duration::from_secs(90), Duration::from_secs(2));
        assert_eq!(printed.to_string(), "?lines=3&timeout=1m30s");
    }
}
