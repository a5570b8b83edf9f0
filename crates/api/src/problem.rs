//! What is answered when something is not done: one shape for everything that can be wrong, as `application/problem+json`
//! (RFC 9457), with a word for programs, a sentence for people, and what to do about it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    /// What kind of problem it is, in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The same for programs.
    pub code: Code,
    /// What is wrong in this case.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Everything that can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request cannot be read: a parameter, a header or the body.
    BadRequest,
    /// There is no token, or it is not a good one.
    Unauthorized,
    /// The request came from a page or for a host that is not ours.
    Forbidden,
    /// There is no such job, run or path.
    NotFound,
    /// The path is there, and cannot be asked in this way.
    MethodNotAllowed,
    /// What is there does not allow it: a run's state, a job that is there already, another source.
    Conflict,
    /// The job is not as the request says that it is.
    Changed,
    /// There is too much of it.
    TooLarge,
    /// The body is of a kind that is not read here.
    UnsupportedMediaType,
    /// It can be read and makes no sense: a job with mistakes, args that do not fit.
    Invalid,
    /// Too many requests wait.
    Busy,
    /// The store is away, or the daemon starts or stops.
    Unavailable,
    /// A defect.
    Internal,
}

impl Code {
    /// The status that goes with it.
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::Changed => 412,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::Busy => 429,
            Self::Internal => 500,
            Self::Unavailable => 503,
        }
    }

    /// The title that goes with it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::BadRequest => "the request cannot be read",
            Self::Unauthorized => "who asks is not known",
            Self::Forbidden => "this may not be asked from there",
            Self::NotFound => "there is no such thing",
            Self::MethodNotAllowed => "this cannot be done there",
            Self::Conflict => "what is there does not allow it",
            Self::Changed => "it was changed meanwhile",
            Self::TooLarge => "that is too much",
            Self::UnsupportedMediaType => "that is not read here",
            Self::Invalid => "that makes no sense",
            Self::Busy => "there is too much to do",
            Self::Unavailable => "it is not available now",
            Self::Internal => "a defect of Cronhold",
        }
    }
}

impl Problem {
    /// What its content type is.
    pub const MEDIA_TYPE: &str = "application/problem+json";

    /// A problem without a hint.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { title: code.title().to_owned(), status: code.status(), code, detail: detail.into(), hint: None }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
