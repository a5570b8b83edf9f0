//! A request with all templates resolved, and what a run keeps of the service that it uses.

use std::collections::BTreeMap;

use cronhold_schedule::text::shortened;
use cronhold_schedule::{Instant, Span, TextError};
use serde::{Deserialize, Serialize};

use crate::job::SecretSource;
use crate::plugin::PluginProgress;

/// The largest size of the texts of a request in bytes. They are stored with every run.
const REQUEST_TEXT_MAX: usize = 1024 * 1024;

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

/// A program that is a task of a remote service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedRemote {
    /// Starts the task.
    pub start: ResolvedRequest,
    /// Polls the task; its texts are templates until the task has started.
    pub poll: ResolvedRequest,
    /// Cancels the task; its texts are templates until the task has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<ResolvedRequest>,
    /// Time between two polls.
    pub every: Span,
    /// Expression: whether the response to a poll means success.
    pub success: String,
    /// Expression: whether the response to a poll means failure.
    pub failure: String,
    /// Whether the task is started again if it is unknown whether the service has started it.
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

/// What a run keeps of the service that its program uses, and of what its program reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceState {
    /// The JSON response that identifies the remote task, once the task has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The request that polls the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll: Option<ResolvedRequest>,
    /// The request that cancels the task, if it can be cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<ResolvedRequest>,
    /// The response that decided the result, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseSummary>,
    /// The latest progress of a plug-in; stored at intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<RunProgress>,
}

/// How far the program of a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProgress {
    /// When it was stored.
    pub at: Instant,
    /// What the program reported.
    #[serde(flatten)]
    pub reported: PluginProgress,
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

    /// Checks that the request can be sent and stored.
    pub fn check(&self) -> Result<(), TextError> {
        let refuse = |message: String, hint: &str| Err(TextError::new(0..0, message).hint(hint));
        if !["http://", "https://"].iter().any(|scheme| self.url.starts_with(scheme)) {
            return refuse(
                format!("`{}` is not a URL", shortened(&self.url)),
                "a URL begins with `https://` or `http://`",
            );
        }
        if let Some(sign) = self.url.chars().find(|sign| sign.is_control() || *sign == ' ') {
            let url = shortened(&self.url).escape_debug().to_string();
            return refuse(
                format!("the URL `{url}` contains {}", sign.escape_debug()),
                "a URL contains neither blanks nor control characters; write `%20` for a blank",
            );
        }
        for (name, value) in &self.headers {
            if let ResolvedHeader::Text(text) = value
                && text.contains(['\r', '\n', '\0'])
            {
                return refuse(format!("the header `{name}` has several lines"), "a header is one line");
            }
        }
        let bytes = self.bytes();
        if bytes > REQUEST_TEXT_MAX {
            let message = format!("the request has {bytes} bytes; at most {REQUEST_TEXT_MAX} are allowed");
            return refuse(message, "send large bodies with `body_file`");
        }
        Ok(())
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
