//! HTTP requests of a job: the program `http`, the requests of a remote task, and the condition `http`.

use std::collections::BTreeMap;
use std::fmt;

use cronhold_schedule::{Span, TextError};
use regex::RegexBuilder;
use serde::{Serialize, Serializer};

use super::SecretSource;
use crate::template::Template;

/// One HTTP request, and which response is expected.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpProgram {
    /// URL of the request.
    pub url: Template,
    /// Upper case; `GET` by default.
    pub method: String,
    /// Headers to send.
    pub headers: BTreeMap<String, HeaderValue>,
    /// Body to send.
    pub body: Option<Template>,
    /// Path of a file whose content is sent as the body, instead of `body`.
    pub body_file: Option<Template>,
    /// Status codes that mean success, as inclusive ranges; 200–299 by default.
    pub expect: Vec<(u16, u16)>,
    /// What the body of the response must contain; anything when absent.
    pub body_matches: Option<BodyPattern>,
    /// How many redirects are followed; 10 by default.
    pub redirects: u32,
    /// Time after which the request fails; 60 s by default.
    pub timeout: Span,
    /// File with the certificates of the authorities that are trusted; those of the system when absent.
    pub ca_file: Option<String>,
    /// Whether the server's certificate is not verified.
    pub insecure: bool,
}

impl HttpProgram {
    /// Default of `expect`.
    pub const EXPECT_DEFAULT: (u16, u16) = (200, 299);
    /// Default of `timeout`.
    pub const TIMEOUT_DEFAULT: Span = Span::from_secs(60);
    /// Default of `redirects`.
    pub const REDIRECTS_DEFAULT: u32 = 10;
    /// The most redirects that can be allowed.
    pub const REDIRECTS_MAX: u32 = 50;

    /// A `GET` with all defaults.
    pub fn new(url: Template) -> Self {
        Self {
            url,
            method: "GET".to_owned(),
            headers: BTreeMap::new(),
            body: None,
            body_file: None,
            expect: vec![Self::EXPECT_DEFAULT],
            body_matches: None,
            redirects: Self::REDIRECTS_DEFAULT,
            timeout: Self::TIMEOUT_DEFAULT,
            ca_file: None,
            insecure: false,
        }
    }
}

/// The value of a request header.
#[derive(Debug, Clone, PartialEq)]
pub enum HeaderValue {
    /// Written in the job; may hold template expressions.
    Text(Template),
    /// A secret, read when the request is sent.
    Secret {
        /// Where the secret is read.
        source: SecretSource,
        /// Text before the secret, such as `Bearer `.
        prefix: String,
    },
}

/// A regular expression that the body of a response must match somewhere. Patterns with equal texts are equal.
#[derive(Clone, PartialEq, Eq)]
pub struct BodyPattern(Box<str>);

impl BodyPattern {
    /// Longest text in bytes.
    pub const TEXT_MAX: usize = 4 * 1024;
    /// Largest compiled form in bytes.
    const COMPILED_MAX: usize = 1024 * 1024;

    /// Parses a regular expression.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text.len() > Self::TEXT_MAX {
            let message = format!("the pattern has {} bytes; at most {} are allowed", text.len(), Self::TEXT_MAX);
            return Err(TextError::new(0..text.len(), message));
        }
        match Self::compile(text) {
            Ok(_) => Ok(Self(text.into())),
            Err(error) => {
                // The error of the engine shows the pattern on several lines before the last one, which has the reason.
                let message = error.to_string();
                let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                let hint = "patterns have the syntax of the Rust crate `regex`, without look-around";
                Err(TextError::new(0..text.len(), format!("invalid pattern: {reason}")).hint(hint))
            }
        }
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a body matches somewhere.
    pub fn is_match(&self, body: &str) -> bool {
        Self::compile(&self.0).is_ok_and(|pattern| pattern.is_match(body))
    }

    fn compile(text: &str) -> Result<regex::Regex, regex::Error> {
        RegexBuilder::new(text).size_limit(Self::COMPILED_MAX).build()
    }
}

impl fmt::Debug for BodyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for BodyPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_matches_any_part_of_a_body() {
        for (pattern, body, expected) in [
            ("ok", "it is ok.", true),
            ("^ok$", "it is ok.", false),
            (r#""status":\s*"done""#, "{\n  \"status\":  \"done\"}", true),
            (r"(?i)\bDONE\b", "all done", true),
            (r"\d{3}", "größe 42", false),
            ("", "", true),
        ] {
            assert_eq!(BodyPattern::parse(pattern).expect(pattern).is_match(body), expected, "{pattern}");
        }
    }

    #[test]
    fn invalid_patterns_are_refused_with_a_reason() {
        for (pattern, reason) in [
            ("(ok", "invalid pattern: unclosed group"),
            ("a(?=b)", "look-around"),
            (r"(\w{500}){500}", "invalid pattern: "),
            (&"x".repeat(5_000), "the pattern has 5000 bytes"),
        ] {
            let error = BodyPattern::parse(pattern).expect_err(pattern).to_string();
            assert!(error.contains(reason), "{pattern}: {error}");
        }
    }
}
