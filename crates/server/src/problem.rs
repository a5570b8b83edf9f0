//! Error responses as `application/problem+json`. This module maps rejections of the core, faults of the store and
//! errors of the node to HTTP status codes.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cronhold_api::{Problem, ProblemCode};
use cronhold_core::decision::Rejection;
use cronhold_core::record::RecordKey;
use cronhold_engine::RequestError;
use cronhold_schedule::TextError;
use cronhold_store::Fault;
use tracing::error;

use crate::AppState;

/// The error of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) problem: Box<Problem>,
    /// Whether a part of the store is damaged.
    is_damage: bool,
}

impl ApiError {
    /// An error without a hint.
    pub(crate) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.problem.hint = Some(hint.into());
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
        Self { problem: Box::new(problem), is_damage: false }
    }
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let code = match &rejection {
            Rejection::NoJob(_) | Rejection::NoRun(_) | Rejection::NoNode(_) | Rejection::NoTrigger { .. } => {
                ProblemCode::NotFound
            }
            Rejection::Args(_)
            | Rejection::Schedule { .. }
            | Rejection::Lock { .. }
            | Rejection::ReservedLock { .. }
            | Rejection::SameSchedule { .. }
            | Rejection::JobTooLarge { .. }
            | Rejection::PauseUntil(_)
            | Rejection::StopBeforeStart(_)
            | Rejection::AdHocKey(_) => ProblemCode::Invalid,
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

/// The part of the store that a failed request could not read. [`report_damage`] logs it.
#[derive(Debug, Clone)]
struct StoreDamage(String);

/// Reports damage that a request has met. Otherwise only the client would learn of it.
pub(crate) async fn report_damage(State(app): State<Arc<AppState>>, response: Response) -> Response {
    if let Some(StoreDamage(detail)) = response.extensions().get() {
        error!(event = "store_damaged", "a request failed: {detail}");
        app.feed.record_damage();
    }
    response
}

/// What an operator can do about a record that cannot be read.
pub(crate) fn repair_hint(key: Option<&RecordKey>) -> String {
    match key {
        Some(RecordKey::Job(job)) => {
            format!("`cronhold del {job}` removes the job, `cronhold upd {job} -f FILE` replaces it")
        }
        Some(RecordKey::JobState(job) | RecordKey::Cursor(job, _) | RecordKey::Backlog(job, _)) => {
            format!("`cronhold del {job}` removes the job with it; then add the job again")
        }
        Some(RecordKey::Pause) => "`cronhold resume all` or `cronhold pause all` replaces it".to_owned(),
        Some(RecordKey::Run(run)) => format!(
            "if it has not ended, `cronhold mark {run} error` ends it; first make sure that its program has ended; \
             a finished run is removed when the job has more runs than it retains"
        ),
        Some(RecordKey::SkipSpan(_)) => "it is removed when the job has more runs than it retains".to_owned(),
        _ => "restore the store from a backup, or remove the record".to_owned(),
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        let hint = match &fault {
            Fault::Unreadable(record) => {
                return Self::new(ProblemCode::Unreadable, fault.to_string()).hint(repair_hint(record.key.as_ref()));
            }
            Fault::Unavailable(_) | Fault::Recovering(_) | Fault::Restarted(_) | Fault::ReadOnly(_) => {
                "nothing was changed; try again when the store has recovered"
            }
            Fault::OutcomeUnknown(_) => "check whether the change was made before you try again",
            Fault::Permanent(_) => "see the daemon's log for details",
        };
        let problem = Self::new(ProblemCode::Unavailable, fault.to_string()).hint(hint);
        Self { is_damage: matches!(fault, Fault::Permanent(_)), ..problem }
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Rejected(rejection) => rejection.into(),
            RequestError::Failed(fault) => fault.into(),
            RequestError::Contended | RequestError::Busy | RequestError::Late => {
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
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&*self.problem).expect("a problem consists of strings and numbers");
        let kind = HeaderValue::from_static(Problem::MEDIA_TYPE);
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.is_damage {
            response.extensions_mut().insert(StoreDamage(self.problem.detail));
        }
        response
    }
}
