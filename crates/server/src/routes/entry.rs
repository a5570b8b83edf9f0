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

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/enter", get(enter)).route("/api/v1/link", post(link)).route("/api/v1/token", post(token))
}

/// The parameters of a sign-in link.
#[derive(Debug, Deserialize)]
pub(crate) struct LinkQuery {
    once: String,
}

/// Creates a link that opens the page once.
#[utoipa::path(post, path = "/api/v1/link", tag = "entry",
    responses((status = 200, body = PageLink), (status = "4XX", body = Problem)))]
pub(crate) async fn link(
    State(app): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<Json<PageLink>, ApiError> {
    // The guard has seen that this is a name of ours; whoever asks by it can open it.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.ok_or_else(|| ApiError::new(ProblemCode::BadRequest, "a request must have one `Host` header"))?;
    Ok(Json(PageLink { url: format!("http://{host}/enter?once={}", app.door.code(app.clock.now())) }))
}

/// Signs a browser in and redirects it to the page.
#[utoipa::path(get, path = "/enter", tag = "entry",
    params(("once" = String, Query, description = "The code of a link")),
    responses((status = 303, description = "To the page, with a session"), (status = "4XX", body = Problem)))]
pub(crate) async fn enter(
    State(app): State<Arc<AppState>>,
    QueryParams(LinkQuery { once }): QueryParams<LinkQuery>,
) -> Result<Response, ApiError> {
    let session = app.door.enter(&once, app.clock.now()).ok_or_else(|| {
        warn!(event = "sign_in_refused", "a link that was used before, or has expired, was refused");
        ApiError::new(ProblemCode::Unauthorized, "this link was used before, or is too old")
            .hint("`cronhold token link` prints a new one")
    })?;
    info!(event = "signed_in", "a browser has signed in with a link");
    let lasts = session.lasts.secs();
    let cookie = format!("{COOKIE}={}; Max-Age={lasts}; Path=/; HttpOnly; SameSite=Strict", session.text);
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, "/".to_owned()), (header::SET_COOKIE, cookie)]).into_response())
}

/// Creates a new admin token. The old one and all sessions become invalid.
#[utoipa::path(post, path = "/api/v1/token", tag = "entry",
    responses((status = 200, body = AdminToken), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn token(
    State(app): State<Arc<AppState>>,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<Json<AdminToken>, ApiError> {
    let renewed = app.door.renew().map_err(|error| {
        ApiError::new(ProblemCode::Unavailable, format!("the new token cannot be written: {error}"))
            .hint("the old one is still good; look at the daemon's data directory")
    })?;
    warn!(event = "token_renewed", "the admin token was renewed; the old one and all sessions are invalid");
    Ok(Json(AdminToken { token: renewed }))
}
