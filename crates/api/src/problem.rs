//! Error responses as `application/problem+json` (RFC 9457), with a code for programs, a message and a hint.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    /// Kind of error in a few words.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// Stable code for programs.
    pub code: ProblemCode,
    /// The error message.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Codes of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// A parameter, a header or the body is malformed.
    BadRequest,
    /// The token is missing or wrong.
    Unauthorized,
    /// The request has a foreign origin or host name, or its caller has not the right to it.
    Forbidden,
    /// The job, run, node or path does not exist.
    NotFound,
    /// The path does not support this method.
    MethodNotAllowed,
    /// The current state does not allow the operation, such as a finished run or an existing job.
    Conflict,
    /// The job has several running runs, and the operation needs one of them.
    Ambiguous,
    /// The job has changed: `If-Match` does not match.
    Changed,
    /// The body or URL is too long.
    TooLarge,
    /// The request line and the headers together are too long.
    HeadTooLarge,
    /// The body is neither JSON nor YAML.
    UnsupportedMediaType,
    /// The request is well-formed but invalid, such as an invalid job or unknown args.
    Invalid,
    /// Too many requests are pending.
    Busy,
    /// The store is unreachable, or the daemon is starting or stopping.
    Unavailable,
    /// A stored record cannot be read. It can be replaced or removed.
    Unreadable,
    /// The store of the daemon does not support the request.
    Unsupported,
    /// Internal error.
    Internal,
}

impl ProblemCode {
    /// The HTTP status of the code.
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict | Self::Ambiguous => 409,
            Self::Changed => 412,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::Busy => 429,
            Self::HeadTooLarge => 431,
            Self::Unreadable | Self::Internal => 500,
            Self::Unsupported => 501,
            Self::Unavailable => 503,
        }
    }

    /// The title of the code.
    pub const fn title(self) -> &'static str {
        match self {
            Self::BadRequest => "malformed request",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not found",
            Self::MethodNotAllowed => "method not allowed",
            Self::Conflict => "conflict with the current state",
            Self::Ambiguous => "ambiguous name",
            Self::Changed => "changed in the meantime",
            Self::TooLarge => "request too large",
            Self::HeadTooLarge => "request head too large",
            Self::UnsupportedMediaType => "unsupported media type",
            Self::Invalid => "invalid request",
            Self::Busy => "too many requests",
            Self::Unavailable => "unavailable",
            Self::Unsupported => "not supported by the store",
            Self::Unreadable => "stored record cannot be read",
            Self::Internal => "internal error",
        }
    }
}

impl Problem {
    /// Content type of a problem.
    pub const MEDIA_TYPE: &str = "application/problem+json";

    /// A problem without a hint.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self { title: code.title().to_owned(), status: code.status(), code, detail: detail.into(), hint: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
