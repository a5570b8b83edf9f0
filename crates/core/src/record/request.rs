//! A request with all templates resolved, and what a run keeps of the service that it uses.

use std::collections::BTreeMap;

use cronhold_schedule::Span;
use serde::{Deserialize, Serialize};

use crate::job::SecretSource;

/// An HTTP request with all templates resolved. Secrets and files are named, not held: they are read when it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedRequest {
    pub url: String,
    /// Upper case.
    pub method: String,
    /// Headers to send.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, ResolvedHeader>,
    /// Body to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<RequestBody>,
    /// Status codes that are expected, as inclusive ranges.
    pub expect: Vec<(u16, u16)>,
    /// Regular expression that the body of the response must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_matches: Option<String>,
    /// How many redirects are followed.
    #[serde(default)]
    pub redirects: u32,
    /// Time after which the request fails.
    pub timeout: Span,
    /// File with the certificates of the authorities that are trusted; those of the system when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// Whether the server's certificate is not verified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}

/// The value of a request header, or the place to read it from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResolvedHeader {
    /// The value itself.
    Text(String),
    /// A secret.
    Secret {
        source: SecretSource,
        /// Text before the secret.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        prefix: String,
    },
}

/// The body of a request, or the place to read it from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestBody {
    /// The body itself.
    Text(String),
    /// The content of a file on the node.
    File(String),
}

/// A program that is one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedHttp {
    pub request: ResolvedRequest,
    /// Whether the request is sent again if it is unknown whether the service received it.
    #[serde(default)]
    pub is_repeatable: bool,
}

/// The status and the headers of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseSummary {
    /// Status code.
    pub status: u16,
    /// Headers, in the order in which they came, without those that hold credentials; at most [`Self::HEADERS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The number of redirects that led to it.
    #[serde(default)]
    pub redirects: u32,
}

/// What a run keeps of the service that its program uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceState {
    /// The response that decided the result, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseSummary>,
}

impl ResponseSummary {
    /// The most headers that are kept.
    pub const HEADERS_MAX: usize = 32;
    /// The most characters of a header's value that are kept.
    pub const VALUE_MAX: usize = 256;
}

impl ResolvedRequest {
    /// Whether a status code is expected.
    pub fn expects(&self, status: u16) -> bool {
        self.expect.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }

    /// Scheme, host and port of the URL: what messages may show, because path and query can contain secrets.
    pub fn origin(&self) -> &str {
        url_origin(&self.url)
    }

    /// The size of all texts in bytes.
    pub fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| match value {
            ResolvedHeader::Text(text) => name.len() + text.len(),
            ResolvedHeader::Secret { source: SecretSource::File(text) | SecretSource::Env(text), prefix } => {
                name.len() + text.len() + prefix.len()
            }
        });
        let body = self.body.as_ref().map_or(0, |body| match body {
            RequestBody::Text(text) | RequestBody::File(text) => text.len(),
        });
        self.url.len() + body + headers.sum::<usize>()
    }
}

/// The scheme and the server of a URL, without user and password.
pub fn url_origin(url: &str) -> &str {
    let Some((scheme, rest)) = url.split_once("://") else { return "" };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    match authority.rfind('@') {
        Some(at) => &authority[at + 1..],
        None => &url[..scheme.len() + 3 + end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_does_not_show_paths_queries_or_passwords() {
        for (url, expected) in [
            ("https://a.example:8443/path?key=1", "https://a.example:8443"),
            ("http://a.example", "http://a.example"),
            ("http://a.example?x", "http://a.example"),
            ("https://ada:secret@a.example/x", "a.example"),
            ("nonsense", ""),
        ] {
            assert_eq!(url_origin(url), expected, "{url}");
        }
    }
}
