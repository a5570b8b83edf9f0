//! Sends requests. Each request has connections of its own, so that it can be ended without touching another one, and
//! because a server may have closed a connection that is reused.

use std::error::Error as _;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use ureq::http::{HeaderMap, Request};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use super::redirect::follow;
use super::{CancelToken, HttpError, HttpRequest, TlsChoice};

/// Bytes of a response that are read at once.
const PIECE: usize = 16 * 1024;

/// Sends requests. The authorities of the system are read with the first one that needs them.
pub(crate) struct HttpClient {
    clock: Arc<dyn MachineClock>,
    /// Certificate files that cannot be read are left out; without any authority no server is trusted.
    system_roots: OnceLock<Arc<Vec<Certificate<'static>>>>,
}

/// The complete response of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    /// Names and values in the order in which they came.
    pub(crate) headers: Vec<(String, String)>,
    /// The number of redirects that led to it.
    pub(crate) redirects: u32,
    /// The beginning of the body, as much as the request keeps.
    pub(crate) body: Vec<u8>,
    /// The length of the whole body, as far as it was read.
    pub(crate) length: u64,
}

impl HttpClient {
    pub(crate) fn new(clock: Arc<dyn MachineClock>) -> Self {
        Self { clock, system_roots: OnceLock::new() }
    }

    /// Sends a request and waits for the complete response. A response of any status is a success.
    pub(crate) fn send(&self, request: HttpRequest, token: &CancelToken) -> Result<HttpReply, HttpError> {
        let deadline = self.clock.uptime().plus(request.timeout);
        let (timeout, mut request, mut redirects) = (request.timeout, request, 0);
        loop {
            let left = deadline.minus(self.clock.uptime());
            if left.is_zero() {
                return Err(no_response(&request.url, &format!("it did not respond within {timeout}")));
            }
            let sent = self.send_once(&request, left, token);
            if token.is_cancelled() {
                return Err(HttpError::Cancelled);
            }
            let mut reply = match sent {
                Ok(reply) => reply,
                Err(SendError::Invalid(message)) => return Err(HttpError::Invalid(message)),
                Err(SendError::Ureq(ureq::Error::Timeout(_))) => {
                    return Err(no_response(&request.url, &format!("it did not respond within {timeout}")));
                }
                Err(SendError::Ureq(error)) => return Err(no_response(&request.url, &explain(&error))),
            };
            reply.redirects = redirects;
            let location = reply.headers.iter().find(|(name, _)| name == "location");
            let next = location.filter(|_| redirects < request.redirects);
            match next.and_then(|(_, location)| follow(&request, reply.status, location)) {
                Some(next) => request = next,
                None => return Ok(reply),
            }
            redirects += 1;
        }
    }

    fn send_once(&self, request: &HttpRequest, timeout: Span, token: &CancelToken) -> Result<HttpReply, SendError> {
        let agent = self.agent(&request.tls, &request.url, timeout)?;
        let mut builder = Request::builder().method(request.method.as_str()).uri(&request.url);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let built = builder.body(&request.body[..]).map_err(|error| SendError::Invalid(error.to_string()))?;
        if token.attach(&agent).is_err() {
            return Err(SendError::Invalid(HttpError::Cancelled.to_string()));
        }
        let response = agent.run(built).map_err(SendError::Ureq)?;
        let (status, headers) = (response.status().as_u16(), header_texts(response.headers()));
        let mut reader = response.into_body().into_reader();
        let (mut body, mut length) = (Vec::new(), 0);
        let mut piece = vec![0; PIECE];
        loop {
            let read = reader.read(&mut piece).map_err(|error| SendError::Ureq(ureq::Error::from(error)))?;
            if read == 0 || length >= request.read_max {
                return Ok(HttpReply { status, headers, redirects: 0, body, length });
            }
            length += read as u64;
            let room = request.kept.saturating_sub(body.len());
            body.extend_from_slice(&piece[..read.min(room)]);
        }
    }

    fn agent(&self, tls: &TlsChoice, url: &str, timeout: Span) -> Result<ureq::Agent, SendError> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_micros(timeout.micros())))
            .http_status_as_error(false)
            // Redirects are followed by rules of our own, because a redirected body may have to be sent again.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(0)
            .proxy(None)
            .user_agent("cronhold")
            .allow_non_standard_methods(true);
        // Without encryption, certificates need not be parsed.
        let config = if url.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://")) {
            config.tls_config(self.tls_config(tls)?)
        } else {
            config
        };
        Ok(ureq::Agent::new_with_config(config.build()))
    }

    fn tls_config(&self, tls: &TlsChoice) -> Result<TlsConfig, SendError> {
        let roots = match &tls.ca_file {
            Some(path) => Arc::new(read_authorities(path)?),
            None => Arc::clone(
                self.system_roots
                    .get_or_init(|| Arc::new(to_certificates(&rustls_native_certs::load_native_certs().certs))),
            ),
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        Ok(TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::new_with_certs(&roots))
            .unversioned_rustls_crypto_provider(provider)
            .disable_verification(tls.insecure)
            .build())
    }
}

/// Why one request of a chain of redirects got no response.
enum SendError {
    Invalid(String),
    Ureq(ureq::Error),
}

fn read_authorities(path: &str) -> Result<Vec<Certificate<'static>>, SendError> {
    let found = rustls_native_certs::load_certs_from_paths(Some(Path::new(path)), None);
    if found.certs.is_empty() {
        let reason = found.errors.first().map_or_else(|| "it has none".to_owned(), ToString::to_string);
        return Err(SendError::Invalid(format!("cannot read certificates from {path}: {reason}")));
    }
    Ok(to_certificates(&found.certs))
}

fn to_certificates(found: &[impl AsRef<[u8]>]) -> Vec<Certificate<'static>> {
    found.iter().map(|certificate| Certificate::from_der(certificate.as_ref()).to_owned()).collect()
}

/// Names and values of headers, each value as text.
fn header_texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}

fn no_response(url: &str, reason: &str) -> HttpError {
    let server = cronhold_core::record::url_origin(url);
    HttpError::NoResponse(format!("{server}: {reason}"))
}

/// The message of an error with its causes.
fn explain(error: &ureq::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}
