//! Error replies, as `application/problem+json`. The one place that maps rejections of the core, faults of the store and
//! refusals of the node to HTTP status codes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cronhold_api::{Problem, ProblemCode};
use cronhold_core::decision::Rejection;
use cronhold_engine::RequestError;
use cronhold_schedule::TextError;
use cronhold_store::Fault;

/// The error of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError(pub(crate) Box<Problem>);

impl ApiError {
    /// An error without a hint.
    pub(crate) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// An error for an invalid text, such as a job's id in a path.
    pub(crate) fn unreadable(code: ProblemCode, error: TextError) -> Self {
        let denied = Self::new(code, error.message);
        match error.hint {
            Some(hint) => denied.hint(hint),
            None => denied,
        }
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let code = match &rejection {
            Rejection::NoJob(_) | Rejection::NoRun(_) | Rejection::NoNode(_) => ProblemCode::NotFound,
            Rejection::Args(_)
            | Rejection::Schedule { .. }
            | Rejection::Lock { .. }
            | Rejection::ReservedLock { .. }
            | Rejection::SameSchedule { .. } => ProblemCode::Invalid,
            Rejection::JobChanged { .. } => ProblemCode::Changed,
            _ => ProblemCode::Conflict,
        };
        let denied = Self::new(code, rejection.to_string());
        match rejection.hint() {
            Some(hint) => denied.hint(hint),
            None => denied,
        }
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        let hint = match &fault {
            Fault::Unavailable(_) | Fault::Recovering(_) | Fault::ReadOnly(_) => {
                "try again when the store works again; nothing was changed"
            }
            Fault::OutcomeUnknown(_) => "look whether it was done before you ask again",
            Fault::Permanent(_) => "the daemon's log says more",
        };
        Self::new(ProblemCode::Unavailable, fault.to_string()).hint(hint)
    }
}

impl From<RequestError> for ApiError {
    fn from(refused: RequestError) -> Self {
        match refused {
            RequestError::Rejected(rejection) => rejection.into(),
            RequestError::Failed(fault) => fault.into(),
            RequestError::Busy | RequestError::Late => {
                Self::new(ProblemCode::Busy, refused.to_string()).hint("ask again a little later")
            }
            RequestError::Stopping => {
                Self::new(ProblemCode::Unavailable, refused.to_string()).hint("ask again after its start")
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&*self.0).expect("a problem is made of texts");
        let kind = HeaderValue::from_static(Problem::MEDIA_TYPE);
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
