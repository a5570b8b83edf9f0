//! Who asks. The guard puts it into the request when it lets it in; routes that change something take it out.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cronhold_api::{Code, Problem};
use cronhold_core::record::Actor;

use crate::problem::Denied;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller(pub(crate) Actor);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Denied> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::new(Code::Unauthorized, "nobody has said who asks").into())
    }
}
