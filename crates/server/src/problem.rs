//! Error responses as `application/problem+json`. This module maps rejections of the core, faults of the store and
//! errors of the node to HTTP status codes.

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

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// An error for an invalid text, such as a job id in a path.
    pub(crate) fn unreadable(code: ProblemCode, error: TextError) -> Self {
        let problem = Self::new(code, error.message);
        match error.hint {
            Some(hint) => problem.hint(hint),
            None => problem,
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
        let problem = Self::new(code, rejection.to_string());
        match rejection.hint() {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        let hint = match &fault {
            Fault::Unavailable(_) | Fault::Recovering(_) | Fault::ReadOnly(_) => {
                "nothing was changed; try again when the store has recovered"
            }
            Fault::OutcomeUnknown(_) => "check whether the change was made before you try again",
            Fault::Permanent(_) => "see the daemon's log for details",
        };
        Self::new(ProblemCode::Unavailable, fault.to_string()).hint(hint)
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Rejected(rejection) => rejection.into(),
            RequestError::Failed(fault) => fault.into(),
            RequestError::Busy | RequestError::Late => {
                Self::new(ProblemCode::Busy, error.to_string()).hint("try again later")
            }
            RequestError::Stopping => {
                Self::new(ProblemCode::Unavailable, error.to_string()).hint("try again after the daemon has restarted")
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&*self.0).expect("a problem consists of strings and numbers");
        let kind = HeaderValue::from_static(Problem::MEDIA_TYPE);
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
