//! A request that can be sent: built from a resolved request, whose secrets and files are read here.

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_core::record::{RequestBody, ResolvedHeader, ResolvedRequest};
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;

use crate::host_env::HostEnv;

/// The header by which receivers recognise a request that they have seen.
pub(crate) const KEY_HEADER: &str = "Idempotency-Key";
/// Bytes of a body that is read from a file.
const BODY_FILE_MAX: u64 = 64 << 20;

/// A request that can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    /// Names of headers that only the server of `url` receives, and no other server that it redirects to.
    pub(crate) secrets: Vec<String>,
    pub(crate) body: Vec<u8>,
    /// How many redirects are followed. Further ones are the response.
    pub(crate) redirects: u32,
    /// The time for everything, redirects and the body of the response included.
    pub(crate) timeout: Span,
    pub(crate) tls: TlsChoice,
    /// Bytes of the response's body that are kept.
    pub(crate) kept: usize,
    /// Bytes of the response's body after which the rest is not read.
    pub(crate) read_max: u64,
}

/// Which servers are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TlsChoice {
    /// File with the certificates of the authorities that are trusted; those of the system when absent.
    pub(crate) ca_file: Option<String>,
    /// Whether the server's certificate is not verified.
    pub(crate) insecure: bool,
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpError {
    /// The request cannot be built: a secret or a file cannot be read. Nothing was sent.
    #[error("{0}")]
    Invalid(String),
    /// The server could not be reached, or did not respond completely in time. It may have received the request.
    #[error("{0}")]
    NoResponse(String),
    /// The request was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
}

/// Ends a request from another thread. Clones end the same request.
#[derive(Debug, Clone, Default)]
pub(crate) struct CancelToken(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    is_cancelled: AtomicBool,
    /// What sends the request now.
    agent: Mutex<Option<ureq::Agent>>,
}

impl HttpRequest {
    /// Reads the secrets and the body of a request. `key` is sent as the idempotency key, unless the job sets one.
    pub(crate) fn new(
        request: &ResolvedRequest,
        key: Option<String>,
        kept: usize,
        host_env: &HostEnv,
    ) -> Result<Self, HttpError> {
        let (mut headers, mut secrets) = (Vec::new(), Vec::new());
        for (name, value) in &request.headers {
            let text = match value {
                ResolvedHeader::Text(text) => text.clone(),
                ResolvedHeader::Secret { source, prefix } => {
                    let secret = host_env.secret(source).map_err(|error| HttpError::Invalid(error.to_string()))?;
                    secrets.push(name.clone());
                    format!("{prefix}{}", secret.trim_end_matches(['\r', '\n']))
                }
            };
            headers.push((name.clone(), text));
        }
        let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let (has_key, has_type) = (has(KEY_HEADER), has("Content-Type"));
        headers.extend(key.filter(|_| !has_key).map(|key| (KEY_HEADER.to_owned(), key)));
        let body = match &request.body {
            None => Vec::new(),
            Some(RequestBody::Text(text)) => {
                if !has_type {
                    let is_json = serde_json::from_str::<serde_json::Value>(text).is_ok();
                    let kind = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
                    headers.push(("Content-Type".to_owned(), kind.to_owned()));
                }
                text.clone().into_bytes()
            }
            Some(RequestBody::File(path)) => {
                let explain = |error| HttpError::Invalid(format!("cannot read the body from {path}: {error}"));
                read_body(path).map_err(explain)?
            }
        };
        Ok(Self {
            method: request.method.clone(),
            url: request.url.clone(),
            headers,
            secrets,
            body,
            redirects: request.redirects,
            timeout: request.timeout,
            tls: TlsChoice { ca_file: request.ca_file.clone(), insecure: request.insecure },
            kept,
            read_max: u64::MAX,
        })
    }
}

fn read_body(path: &str) -> io::Result<Vec<u8>> {
    let found = std::fs::metadata(path)?;
    // A pipe or a device could block.
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut body = Vec::new();
    File::open(path)?.take(BODY_FILE_MAX + 1).read_to_end(&mut body)?;
    if body.len() as u64 > BODY_FILE_MAX {
        return Err(io::Error::other(format!("it has more than {BODY_FILE_MAX} bytes")));
    }
    Ok(body)
}

impl CancelToken {
    /// Ends the request: its connection is closed, and the thread that waits for it continues.
    pub(crate) fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::SeqCst);
        let agent = lock_mutex(&self.0.agent).take();
        if let Some(agent) = agent {
            agent.shutdown();
        }
    }

    /// Whether both end the same request.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::SeqCst)
    }

    /// Sets what sends the request. Fails if it has been cancelled.
    pub(super) fn attach(&self, agent: &ureq::Agent) -> Result<(), HttpError> {
        *lock_mutex(&self.0.agent) = Some(agent.clone());
        if self.is_cancelled() { Err(HttpError::Cancelled) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cronhold_core::job::SecretSource;

    use super::*;

    fn request(body: Option<RequestBody>, headers: &[(&str, ResolvedHeader)]) -> ResolvedRequest {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        ResolvedRequest {
            url: "https://a.example/".to_owned(),
            method: "POST".to_owned(),
            headers: headers.collect::<BTreeMap<_, _>>(),
            body,
            expect: vec![(200, 299)],
            body_matches: None,
            redirects: 10,
            timeout: Span::from_secs(60),
            ca_file: None,
            insecure: false,
        }
    }

    fn built(request: &ResolvedRequest) -> Result<HttpRequest, HttpError> {
        let host_env = HostEnv::new([("TOKEN".to_owned(), "s3cret".to_owned())]);
        HttpRequest::new(request, Some("run-1".to_owned()), 100, &host_env)
    }

    fn text(text: &str) -> ResolvedHeader {
        ResolvedHeader::Text(text.to_owned())
    }

    #[test]
    fn request_has_a_key_and_a_content_type_unless_the_job_sets_them() {
        let json = Some(RequestBody::Text(r#"{"day": 1}"#.to_owned()));
        let plain = Some(RequestBody::Text("day 1".to_owned()));
        for (body, headers, expected) in [
            (None, vec![], "Idempotency-Key: run-1"),
            (json.clone(), vec![], "Idempotency-Key: run-1, Content-Type: application/json"),
            (plain, vec![], "Idempotency-Key: run-1, Content-Type: text/plain; charset=utf-8"),
            (
                json,
                vec![("content-type", text("application/x")), ("idempotency-key", text("mine"))],
                "content-type: application/x, idempotency-key: mine",
            ),
        ] {
            let built = built(&request(body, &headers)).expect("valid");
            let shown: Vec<String> = built.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            assert_eq!(shown.join(", "), expected);
        }
    }

    #[test]
    fn secret_header_is_read_and_marked() {
        let secret = |source| ResolvedHeader::Secret { source, prefix: "Bearer ".to_owned() };
        let built_request = built(&request(None, &[("Authorization", secret(SecretSource::Env("TOKEN".to_owned())))]));
        let built_request = built_request.expect("the daemon has the variable");
        assert_eq!(built_request.headers[0], ("Authorization".to_owned(), "Bearer s3cret".to_owned()));
        assert_eq!(built_request.secrets, ["Authorization"]);
        let unset = built(&request(None, &[("Authorization", secret(SecretSource::Env("ABSENT".to_owned())))]));
        assert!(matches!(unset, Err(HttpError::Invalid(_))), "{unset:?}");
    }

    #[test]
    fn body_is_read_from_a_regular_file() {
        let path = std::env::temp_dir().join(format!("cronhold-body-{}", std::process::id()));
        std::fs::write(&path, "from a file").expect("written");
        let body = Some(RequestBody::File(path.display().to_string()));
        assert_eq!(built(&request(body.clone(), &[])).expect("there").body, b"from a file");
        std::fs::remove_file(&path).expect("there");
        for body in [body, Some(RequestBody::File("/dev/zero".to_owned()))] {
            assert!(matches!(built(&request(body, &[])), Err(HttpError::Invalid(_))));
        }
    }
}
