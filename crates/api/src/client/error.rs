//! Why a request has no answer. Three cases, because whoever asked does something else in each.

use crate::Problem;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nobody is there, or nobody answers in time.
    #[error("{0}")]
    Unreachable(String),
    /// The daemon says no.
    #[error(transparent)]
    Problem(Box<Problem>),
    /// Someone is there and does not speak as our daemon does.
    #[error("{0}")]
    Broken(String),
}

impl CallError {
    /// What the daemon says, when it does.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            Self::Unreachable(_) | Self::Broken(_) => None,
        }
    }
}
