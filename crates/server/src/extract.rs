//! Extractors of requests. Those of the framework report errors as plain text; these report a problem like all routes.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use cronhold_api::{LIMIT, LIMIT_MAX, ProblemCode};
use cronhold_core::JobId;
use cronhold_core::record::TriggerId;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::guard;
use crate::problem::ApiError;

/// Timeout for the body of a request.
const BODY_WAIT: Duration = Duration::from_secs(30);

/// The query parameters.
#[derive(Debug)]
pub(crate) struct QueryParams<T>(pub(crate) T);

/// A JSON body. An empty body is read as `{}`.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

/// The job id in a path, as one segment.
#[derive(Debug)]
pub(crate) struct JobIdPath(pub(crate) JobId);

/// The job id and the id of a trigger in a path, each as one segment.
#[derive(Debug)]
pub(crate) struct TriggerPath(pub(crate) JobId, pub(crate) TriggerId);

/// The variable segment of a path, such as the name of a run.
#[derive(Debug)]
pub(crate) struct PathSegment(pub(crate) String);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read: Result<Query<T>, QueryRejection> = Query::from_request_parts(parts, state).await;
        read.map(|Query(params)| Self(params))
            .map_err(|error| ApiError::new(ProblemCode::BadRequest, format!("invalid query: {}", cause(&error))))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathSegment {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        read.map(|Path(segment)| Self(segment))
            .map_err(|error| ApiError::new(ProblemCode::BadRequest, format!("invalid path: {}", cause(&error))))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for JobIdPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let PathSegment(text) = PathSegment::from_request_parts(parts, state).await?;
        JobId::parse(&text).map(Self).map_err(|error| ApiError::unreadable(ProblemCode::BadRequest, error))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TriggerPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read: Result<Path<(String, String)>, PathRejection> = Path::from_request_parts(parts, state).await;
        let Path((job, trigger)) =
            read.map_err(|error| ApiError::new(ProblemCode::BadRequest, format!("invalid path: {}", cause(&error))))?;
        let unreadable = |error| ApiError::unreadable(ProblemCode::BadRequest, error);
        Ok(Self(JobId::parse(&job).map_err(unreadable)?, TriggerId::parse(&trigger).map_err(unreadable)?))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let bytes = whole(request, state).await?;
        if bytes.is_empty() {
            return serde_json::from_slice(b"{}")
                .map(Self)
                .map_err(|error| ApiError::new(ProblemCode::BadRequest, format!("the body is missing: {error}")));
        }
        if !is_json {
            return Err(ApiError::new(ProblemCode::UnsupportedMediaType, "the body must be JSON")
                .hint("send it with `Content-Type: application/json`"));
        }
        // serde would read a list as the values of the struct in order.
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return Err(ApiError::new(ProblemCode::BadRequest, "the body must be a JSON object, not a list"));
        }
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| ApiError::new(ProblemCode::BadRequest, format!("invalid body: {error}")))
    }
}

/// The error for a body that is too long.
pub(crate) fn too_long(body_max: usize) -> ApiError {
    ApiError::new(ProblemCode::TooLarge, format!("the body has more than {body_max} bytes"))
}

/// Reads the whole body. The guard limits its length.
pub(crate) async fn whole<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    let body_max = guard::body_max(request.uri().path());
    let Ok(read) = timeout(BODY_WAIT, Bytes::from_request(request, state)).await else {
        return Err(ApiError::new(ProblemCode::BadRequest, "timeout while reading the body"));
    };
    read.map_err(|error| match error.status().as_u16() {
        413 => too_long(body_max),
        _ => ApiError::new(ProblemCode::BadRequest, format!("cannot read the body: {}", cause(&error))),
    })
}

/// The media type of a body without its parameters, such as `application/json`.
pub(crate) fn kind(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

fn is_json(headers: &HeaderMap) -> bool {
    kind(headers).is_some_and(|kind| kind == "application/json" || kind.ends_with("+json"))
}

/// The root cause of an error, without the text that the framework adds.
fn cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Checks the number of items in a page, and applies the default.
pub(crate) fn limit(requested: Option<usize>) -> Result<usize, ApiError> {
    match requested {
        None => Ok(LIMIT),
        Some(limit) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::new(ProblemCode::BadRequest, format!("`limit` must be from 1 to {LIMIT_MAX}"))),
    }
}
