//! The identity of the caller. The guard adds it to the request; routes that change something extract it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cronhold_api::{Code, Problem};
use cronhold_core::record::Actor;

use crate::problem::Denied;

/// The identity of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller(pub(crate) Actor);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Denied> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::new(Code::Unauthorized, "the request has no identity").into())
    }
}
