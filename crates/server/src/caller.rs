//! The identity of the caller. The guard adds it to the request; routes that change something extract it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cronhold_api::{Problem, ProblemCode};
use cronhold_core::record::Actor;

use crate::problem::ApiError;

/// The identity of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestIdentity(pub(crate) Actor);

/// How the caller was authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    /// The socket in the data directory: the process belongs to the daemon's user or to root.
    LocalUser,
    /// The same socket, by the program of a run. The guard has checked the role of programs.
    Program,
    /// The admin token.
    Token,
    /// A session of the web page.
    Session,
}

impl Credential {
    /// Whether the credential becomes invalid when the token is renewed.
    pub(crate) fn ends_with_token(self) -> bool {
        matches!(self, Self::Token | Self::Session)
    }

    /// Refuses what a session must not do, so that a stolen session cannot outlive the token.
    pub(crate) fn check_admin(self) -> Result<(), ApiError> {
        if self == Self::Session {
            let message = "a session of the web page cannot create links or tokens";
            return Err(
                ApiError::new(ProblemCode::Forbidden, message).hint("run `cronhold token` on the daemon's machine")
            );
        }
        Ok(())
    }
}

fn missing() -> ApiError {
    Problem::new(ProblemCode::Unauthorized, "the request has no identity").into()
}

impl<S: Sync> FromRequestParts<S> for RequestIdentity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(missing)
    }
}

impl<S: Sync> FromRequestParts<S> for Credential {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().copied().ok_or_else(missing)
    }
}
