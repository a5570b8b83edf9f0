//! Sign-in: links that sign a browser in once, and a new admin token.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use cronhold_api::{AdminToken, PageLink, Problem, ProblemCode};
use serde::Deserialize;
use tracing::{info, warn};

use super::pauses::EmptyBody;
use crate::AppState;
use crate::extract::{JsonBody, QueryParams};
use crate::guard::COOKIE;
use crate::problem::ApiError;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/enter", get(enter)).route("/api/v1/link", post(link)).route("/api/v1/token", post(token))
}

/// The parameters of a sign-in link.
#[derive(Debug, Deserialize)]
pub(crate) struct LinkQuery {
    once: String,
}

/// Create a link that opens the web page once
#[utoipa::path(post, path = "/api/v1/link", tag = "authentication",
    responses((status = 200, body = PageLink), (status = "4XX", body = Problem)))]
pub(crate) async fn link(
    State(app): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<Json<PageLink>, ApiError> {
    // The guard has checked that the host is one of ours. The caller reached the daemon by it, so its browser can as
    // well.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.ok_or_else(|| ApiError::new(ProblemCode::BadRequest, "a request must have one `Host` header"))?;
    Ok(Json(PageLink { url: format!("http://{host}/enter?once={}", app.door.code(app.clock.now())) }))
}

/// Sign in a browser with a link, and redirect it to the web page
#[utoipa::path(get, path = "/enter", tag = "authentication",
    params(("once" = String, Query, description = "Code of the link")),
    responses(
        (status = 303, description = "Redirect to the web page, with a session cookie"),
        (status = "4XX", body = Problem)))]
pub(crate) async fn enter(
    State(app): State<Arc<AppState>>,
    QueryParams(LinkQuery { once }): QueryParams<LinkQuery>,
) -> Result<Response, ApiError> {
    let session = app.door.enter(&once, app.clock.now()).ok_or_else(|| {
        warn!(event = "sign_in_refused", "rejected a sign-in link that was used or has expired");
        ApiError::new(ProblemCode::Unauthorized, "the link was already used or has expired")
            .hint("`cronhold token link` prints a new link")
    })?;
    info!(event = "signed_in", "a browser signed in with a link");
    let lasts = session.lasts.secs();
    let cookie = format!("{COOKIE}={}; Max-Age={lasts}; Path=/; HttpOnly; SameSite=Strict", session.text);
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, "/".to_owned()), (header::SET_COOKIE, cookie)]).into_response())
}

/// Create a new admin token
///
/// The old token and all sessions become invalid.
#[utoipa::path(post, path = "/api/v1/token", tag = "authentication",
    responses((status = 200, body = AdminToken), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn token(
    State(app): State<Arc<AppState>>,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<Json<AdminToken>, ApiError> {
    let renewed = app.door.renew().map_err(|error| {
        ApiError::new(ProblemCode::Unavailable, format!("cannot write the new token: {error}"))
            .hint("the old token is still valid; check the daemon's data directory")
    })?;
    warn!(event = "token_renewed", "the admin token was renewed; the old token and all sessions are invalid");
    Ok(Json(AdminToken { token: renewed }))
}
