//! The checks that every request passes before a route handles it: path, host, origin, body and authentication. A web
//! page of another site must not be able to send requests to us, neither from its own origin nor by a host name that
//! resolves to our address.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cronhold_api::{ProblemCode, TASK_STORE, TASK_STORE_BODY_MAX};
use cronhold_core::RunId;
use cronhold_core::percent;
use cronhold_core::record::{Actor, Record, RecordKey, StoredRecord};
use cronhold_store::Store;
use tracing::{debug, warn};

use crate::AppState;
use crate::caller::{Credential, RequestIdentity};
use crate::connections::ClientConnection;
use crate::extract;
use crate::problem::ApiError;
use crate::roles;
use crate::stream;

/// Maximum length of a body, in bytes.
pub(crate) const BODY_MAX: usize = 1024 * 1024;
/// Maximum length of the head of a request, in bytes.
pub(crate) const HEAD_MAX: usize = 64 * 1024;
/// Maximum length of a path and its query, in bytes.
const URI_MAX: usize = 8 * 1024;
/// Maximum length of a user name, in bytes.
const NAME_MAX: usize = 64;
/// The name of the user, for requests with the token and from the machine.
const USER: HeaderName = HeaderName::from_static("x-cronhold-user");
/// The name of a caller with a session.
const PAGE: &str = "page";
/// Accepted content types. An HTML form cannot send any of them.
const KINDS: [&str; 5] = ["application/json", "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"];

/// Host names that requests may use.
#[derive(Debug, Clone)]
pub struct AllowedHosts {
    address: SocketAddr,
    names: Vec<String>,
}

/// The state of the middleware.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    pub(crate) app: Arc<AppState>,
    pub(crate) hosts: AllowedHosts,
}

impl AllowedHosts {
    /// The listening address, and other accepted names.
    pub fn new(address: SocketAddr, names: &[String]) -> Self {
        Self { address, names: names.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Whether a `Host` header names this daemon.
    fn is_ours(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let (name, port) = split_port(&host);
        if self.names.iter().any(|known| *known == host || known == name) {
            // A proxy may listen on any port.
            return true;
        }
        if port.unwrap_or(80) != self.address.port() {
            return false;
        }
        let ip = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let ours = self.address.ip();
        match ip {
            Some(ip) if ours.is_unspecified() => !ip.is_unspecified(),
            Some(ip) => ip == ours || (ours.is_loopback() && ip.is_loopback()),
            None => name == "localhost",
        }
    }
}

/// Splits a host into its name and its port.
fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        // A colon may be part of an address in brackets.
        Some((name, port)) if !port.contains(']') => (name, port.parse().ok().or(Some(0))),
        _ => (host, None),
    }
}

/// Checks a request, passes it to its route or rejects it, and logs it.
pub(crate) async fn guard(State(guard): State<Arc<RequestGuard>>, mut request: Request, next: Next) -> Response {
    let received = guard.app.clock.uptime();
    // The log must not contain the query, which has the code of a sign-in link.
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut actor = None;
    let connection = request.extensions().get::<Arc<ClientConnection>>();
    let program = match connection.and_then(|connection| connection.program_run()) {
        Some(run) => program_name(&*guard.app.store, run).await,
        None => None,
    };
    let mut response = match guard.check(&request, program) {
        Ok(None) => next.run(request).await,
        Ok(Some((caller, credential))) => {
            actor = Some(caller.0.to_string());
            if let Some(connection) = request.extensions().get::<Arc<ClientConnection>>() {
                connection.set_trusted();
            }
            let renewals = credential.ends_with_token().then(|| guard.app.auth.renewals());
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(credential);
            let response = next.run(request).await;
            match renewals {
                Some(renewals) => stream::end_on_change(response, renewals),
                None => response,
            }
        }
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let (status, took) = (response.status().as_u16(), guard.app.clock.uptime().minus(received));
    debug!(
        event = "request", %method, path, status, took_us = took.micros(), actor,
        "{method} {path}: {status} in {took}"
    );
    response
}

impl RequestGuard {
    /// The identity of the caller; `None` for paths that need no authentication. `program` is the name of the program
    /// that sent the request.
    fn check(
        &self,
        request: &Request,
        program: Option<String>,
    ) -> Result<Option<(RequestIdentity, Credential)>, ApiError> {
        let (headers, uri) = (request.headers(), request.uri());
        check_head(request)?;
        check_uri(uri)?;
        let is_local = request.extensions().get::<Arc<ClientConnection>>().is_some_and(|from| from.is_local());
        // No browser can use the socket, and a command may still have the address of a daemon that was restarted.
        if !is_local {
            let host = self.check_host(headers, uri)?;
            check_origin(headers, host)?;
        }
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
        if changes {
            check_body(headers, body_max(uri.path()))?;
        }
        if is_open(uri.path()) {
            return Ok(None);
        }
        let caller = match program {
            Some(program) => {
                roles::check(self.app.programs.role, &program, request.method(), uri.path())?;
                (Credential::Program, program)
            }
            None if is_local => (Credential::LocalUser, name(headers)?),
            None => self.check_caller(headers)?,
        };
        let needs_store = uri.path().starts_with(cronhold_api::BASE) || uri.path().starts_with(roles::SIDEJOB);
        if !self.app.is_ready() && needs_store {
            return Err(ApiError::new(ProblemCode::Unavailable, "the daemon is starting").hint("try again in a moment"));
        }
        let (credential, name) = caller;
        Ok(Some((RequestIdentity(Actor::Operator(name)), credential)))
    }

    fn check_host<'a>(&self, headers: &'a HeaderMap, uri: &'a Uri) -> Result<&'a str, ApiError> {
        let mut hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
        let (host, another) = (hosts.next(), hosts.next());
        let named = uri.authority().map(|authority| authority.as_str());
        let (Some(host), None) = (host.or(named), another) else {
            return Err(ApiError::new(ProblemCode::BadRequest, "a request must have one `Host` header"));
        };
        if !self.hosts.is_ours(host) || named.is_some_and(|named| !self.hosts.is_ours(named)) {
            let shown: String = host.chars().take(NAME_MAX).collect();
            return Err(ApiError::new(ProblemCode::Forbidden, format!("`{shown}` is not a host name of this daemon"))
                .hint("use the address that the daemon listens on, or start it with `--host NAME`"));
        }
        Ok(host)
    }

    /// Checks the token or session, and returns the name of the caller.
    fn check_caller(&self, headers: &HeaderMap) -> Result<(Credential, String), ApiError> {
        let Some(given) = headers.get(header::AUTHORIZATION) else {
            let message = "the request needs the admin token or a session";
            return Err(ApiError::new(ProblemCode::Unauthorized, message).hint(
                "send `Authorization: Bearer TOKEN`, or open the web page with a link from `cronhold token link`",
            ));
        };
        let bearer = given.to_str().ok().and_then(|given| {
            let (scheme, bearer) = given.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| bearer.trim())
        });
        match bearer {
            Some(token) if self.app.auth.is_token(token) => Ok((Credential::Token, name(headers)?)),
            Some(session) if self.app.auth.is_session(session, self.app.clock.now()) => {
                Ok((Credential::Session, PAGE.to_owned()))
            }
            _ => {
                warn!(event = "sign_in_refused", "rejected a request with an invalid token or session");
                Err(ApiError::new(ProblemCode::Unauthorized, "invalid token or session")
                    .hint("the token is in the file `token` in the daemon's data directory"))
            }
        }
    }
}

/// The name of the program that belongs to a run; `None` if the store has no such run, because the program belongs to
/// another daemon or its run is no longer kept.
async fn program_name(store: &dyn Store, run: RunId) -> Option<String> {
    match store.load(&[RecordKey::Run(run)]).await.as_deref() {
        Ok([Some(StoredRecord { record: Record::Run(run), .. })]) => Some(format!("run {}#{}", run.job, run.number.0)),
        Ok(_) => None,
        Err(_) => Some(format!("run {run}")),
    }
}

/// Paths that need no authentication: health, the files of the page, and the sign-in with a code.
fn is_open(path: &str) -> bool {
    matches!(path, "/" | "/health" | "/ready" | "/enter" | "/favicon.ico" | "/api/v1/session")
        || path.starts_with("/page/")
}

/// Rejects a head that is too long. Its length is computed with one space after each colon.
fn check_head(request: &Request) -> Result<(), ApiError> {
    let uri = request.uri();
    let uri = uri.scheme_str().map_or(0, |scheme| scheme.len() + "://".len())
        + uri.authority().map_or(0, |authority| authority.as_str().len())
        + uri.path_and_query().map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + uri + "  HTTP/1.1\r\n".len();
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    if line + headers.sum::<usize>() + "\r\n".len() > HEAD_MAX {
        let message = format!("the head of the request has more than {HEAD_MAX} bytes");
        return Err(ApiError::new(ProblemCode::HeadTooLarge, message));
    }
    Ok(())
}

/// Rejects paths that a proxy or a route could interpret differently.
fn check_uri(uri: &Uri) -> Result<(), ApiError> {
    let bad = |detail: &str| Err(ApiError::new(ProblemCode::BadRequest, format!("the path {detail}")));
    if uri.path().len() + uri.query().map_or(0, str::len) > URI_MAX {
        return Err(ApiError::new(
            ProblemCode::TooLarge,
            format!("the path and its query have more than {URI_MAX} bytes"),
        ));
    }
    if !uri.path().starts_with('/') {
        return bad("must begin with `/`");
    }
    for segment in uri.path()[1..].split('/') {
        let Some(decoded) = percent::decode(segment) else { return bad("is not valid percent-encoded UTF-8") };
        if decoded == "." || decoded == ".." {
            return bad("must not contain `.` or `..`");
        }
        if decoded.chars().any(char::is_control) {
            return bad("must not contain control characters");
        }
    }
    Ok(())
}

/// Rejects requests that a page of another origin sent.
fn check_origin(headers: &HeaderMap, host: &str) -> Result<(), ApiError> {
    let is_ours = |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        site.is_some_and(|site| site.eq_ignore_ascii_case(host))
    };
    if headers.get_all(header::ORIGIN).iter().all(is_ours) {
        return Ok(());
    }
    Err(ApiError::new(ProblemCode::Forbidden, "the request comes from a page of another origin"))
}

/// Maximum length of the body of a request, in bytes.
pub(crate) fn body_max(path: &str) -> usize {
    match path.starts_with(TASK_STORE) {
        true => TASK_STORE_BODY_MAX,
        false => BODY_MAX,
    }
}

fn check_body(headers: &HeaderMap, body_max: usize) -> Result<(), ApiError> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > body_max as u64) {
        return Err(extract::too_long(body_max));
    }
    let has_body = length.is_some_and(|length| length > 0) || headers.contains_key(header::TRANSFER_ENCODING);
    let kind = extract::kind(headers);
    if (has_body || kind.is_some()) && !kind.is_some_and(|kind| KINDS.contains(&kind.as_str())) {
        return Err(ApiError::new(ProblemCode::UnsupportedMediaType, "the body must be JSON, or YAML for a job")
            .hint("send it with `Content-Type: application/json` or `application/yaml`"));
    }
    Ok(())
}

/// The name that a caller with the token gives itself, `api` by default.
fn name(headers: &HeaderMap) -> Result<String, ApiError> {
    let Some(name) = headers.get(USER) else { return Ok("api".to_owned()) };
    let name = std::str::from_utf8(name.as_bytes()).unwrap_or_default().trim();
    if name.is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control) {
        let message = format!("`X-Cronhold-User` must be a name of at most {NAME_MAX} bytes");
        return Err(ApiError::new(ProblemCode::BadRequest, message));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests;
