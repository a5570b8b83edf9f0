//! The identity of the caller. The guard adds it to the request; routes that change something extract it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cronhold_api::{Problem, ProblemCode};
use cronhold_core::record::Actor;

use crate::problem::ApiError;

/// The identity of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestIdentity(pub(crate) Actor);

impl<S: Sync> FromRequestParts<S> for RequestIdentity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::new(ProblemCode::Unauthorized, "the request has no identity").into())
    }
}
