//! Errors of requests: three cases that callers handle differently.

use crate::Problem;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The daemon is unreachable or does not respond in time.
    #[error("{0}")]
    Unreachable(String),
    /// The daemon responded with an error.
    #[error(transparent)]
    Problem(Box<Problem>),
    /// The response is not one of Cronhold's.
    #[error("{0}")]
    Broken(String),
}

impl CallError {
    /// The daemon's error response, if there is one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            Self::Unreachable(_) | Self::Broken(_) => None,
        }
    }
}
