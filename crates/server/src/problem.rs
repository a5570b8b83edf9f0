//! Error replies, as `application/problem+json`. The one place that maps rejections of the core, faults of the store and
//! refusals of the node to HTTP status codes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cronhold_api::{Code, Problem};
use cronhold_core::decision::Rejection;
use cronhold_engine::Refused;
use cronhold_schedule::TextError;
use cronhold_store::Fault;

/// The error of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied(pub(crate) Box<Problem>);

impl Denied {
    /// An error without a hint.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// An error for an invalid text, such as a job's id in a path.
    pub(crate) fn unreadable(code: Code, error: TextError) -> Self {
        let denied = Self::new(code, error.message);
        match error.hint {
            Some(hint) => denied.hint(hint),
            None => denied,
        }
    }
}

impl From<Problem> for Denied {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<Rejection> for Denied {
    fn from(rejection: Rejection) -> Self {
        let code = match &rejection {
            Rejection::NoJob(_) | Rejection::NoRun(_) | Rejection::NoNode(_) => Code::NotFound,
            Rejection::Args(_)
            | Rejection::Schedule { .. }
            | Rejection::Lock { .. }
            | Rejection::ReservedLock { .. }
            | Rejection::SameSchedule { .. } => Code::Invalid,
            Rejection::JobChanged { .. } => Code::Changed,
            _ => Code::Conflict,
        };
        let denied = Self::new(code, rejection.to_string());
        match rejection.hint() {
            Some(hint) => denied.hint(hint),
            None => denied,
        }
    }
}

impl From<Fault> for Denied {
    fn from(fault: Fault) -> Self {
        let hint = match &fault {
            Fault::Away(_) | Fault::Recovering(_) | Fault::ReadOnly(_) => {
                "try again when the store works again; nothing was changed"
            }
            Fault::Unknown(_) => "look whether it was done before you ask again",
            Fault::Broken(_) => "the daemon's log says more",
        };
        Self::new(Code::Unavailable, fault.to_string()).hint(hint)
    }
}

impl From<Refused> for Denied {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Rejected(rejection) => rejection.into(),
            Refused::Failed(fault) => fault.into(),
            Refused::Busy | Refused::Late => {
                Self::new(Code::Busy, refused.to_string()).hint("ask again a little later")
            }
            Refused::Stopping => Self::new(Code::Unavailable, refused.to_string()).hint("ask again after its start"),
        }
    }
}

impl IntoResponse for Denied {
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
