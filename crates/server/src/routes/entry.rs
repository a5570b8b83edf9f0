//! Sign-in: links that sign a browser in once, and a new admin token.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::routing::post;
use axum::{Json, Router};
use cronhold_api::{AdminToken, PageLink, PageSession, Problem, ProblemCode, SignInBody};
use tracing::{info, warn};

use super::pauses::EmptyBody;
use crate::AppState;
use crate::caller::Credential;
use crate::extract::JsonBody;
use crate::problem::ApiError;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/session", post(session))
        .route("/api/v1/link", post(link))
        .route("/api/v1/token", post(token))
}

/// Create a link that opens the web page once
#[utoipa::path(post, path = "/api/v1/link", tag = "authentication",
    responses((status = 200, body = PageLink), (status = "4XX", body = Problem)))]
pub(crate) async fn link(
    State(app): State<Arc<AppState>>,
    credential: Credential,
    headers: HeaderMap,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<Json<PageLink>, ApiError> {
    credential.check_admin()?;
    // The guard has checked that the host is one of ours. The caller reached the daemon by it, so its browser can as
    // well.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.ok_or_else(|| ApiError::new(ProblemCode::BadRequest, "a request must have one `Host` header"))?;
    Ok(Json(PageLink { url: app.auth.link(&format!("http://{host}"), app.clock.now()) }))
}

/// Sign in a browser with the code of a link
///
/// The web page does this when a link is opened. A code is valid once.
#[utoipa::path(post, path = "/api/v1/session", tag = "authentication", request_body = SignInBody, security(()),
    responses((status = 200, body = PageSession), (status = "4XX", body = Problem)))]
pub(crate) async fn session(
    State(app): State<Arc<AppState>>,
    JsonBody(SignInBody { code }): JsonBody<SignInBody>,
) -> Result<Json<PageSession>, ApiError> {
    let session = app.auth.enter(&code, app.clock.now()).ok_or_else(|| {
        warn!(event = "sign_in_refused", "rejected a sign-in link that was used or has expired");
        ApiError::new(ProblemCode::Unauthorized, "the link was already used or has expired")
            .hint("`cronhold token link` prints a new link")
    })?;
    info!(event = "signed_in", "a browser signed in with a link");
    Ok(Json(session))
}

/// Create a new admin token
///
/// The old token and all sessions become invalid, and responses that are still being sent to them end.
#[utoipa::path(post, path = "/api/v1/token", tag = "authentication",
    responses((status = 200, body = AdminToken), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn token(
    State(app): State<Arc<AppState>>,
    credential: Credential,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<Json<AdminToken>, ApiError> {
    credential.check_admin()?;
    let renewed = app.auth.renew().map_err(|error| {
        ApiError::new(ProblemCode::Unavailable, format!("cannot write the new token: {error}"))
            .hint("the old token is still valid; check the daemon's data directory")
    })?;
    warn!(event = "token_renewed", "the admin token was renewed; the old token and all sessions are invalid");
    Ok(Json(AdminToken { token: renewed }))
}
