//! One request and its answer over a connection of its own.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::address::Path;
use super::{CallError, Caller, PATIENCE};
use crate::Problem;

/// How long it may take until someone has taken the connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// The longest answer that is taken at once; longer ones are streams.
const ANSWER_MAX: usize = 64 * 1024 * 1024;
/// How much of an answer that makes no sense is shown.
const SHOWN_MAX: usize = 200;

/// A request in the making.
#[derive(Debug)]
pub(super) struct Ask {
    method: Method,
    path: Path,
    headers: HeaderMap,
    body: String,
}

impl Ask {
    pub(super) fn new(method: Method, path: Path) -> Self {
        Self { method, path, headers: HeaderMap::new(), body: String::new() }
    }

    /// With a body of ours.
    pub(super) fn json(self, body: &impl Serialize) -> Self {
        let text = serde_json::to_string(body).expect("bodies are plain structs with texts as keys");
        self.text("application/json", text)
    }

    /// With a body of the given kind.
    pub(super) fn text(mut self, kind: &'static str, text: String) -> Self {
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        self.body = text;
        self
    }

    /// With one header more. Signs that a header cannot have are encoded, so that different values stay different.
    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        let mut plain = String::new();
        for byte in value.bytes() {
            match byte {
                b' '..=b'~' => plain.push(char::from(byte)),
                _ => plain.push_str(&format!("%{byte:02X}")),
            }
        }
        self.headers.insert(name, HeaderValue::from_str(&plain).expect("only plain signs are left"));
        self
    }

    fn request(self, caller: &Caller) -> Request<String> {
        let mut ask = self.header(HOST, caller.address.authority()).header(USER_AGENT, "cronhold");
        if let Some(token) = &caller.token {
            ask = ask.header(AUTHORIZATION, &format!("Bearer {token}"));
        }
        if let Some(user) = &caller.user {
            ask = ask.header(HeaderName::from_static("x-cronhold-user"), user);
        }
        ask.headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        let mut request = Request::new(ask.body);
        *request.method_mut() = ask.method;
        *request.uri_mut() = ask.path.as_str().parse().expect("every sign that is none of a path is encoded");
        *request.headers_mut() = ask.headers;
        request
    }
}

/// An answer as a whole.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) status: StatusCode,
    pub(super) etag: Option<String>,
    bytes: Vec<u8>,
}

impl Body {
    /// What it says.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_slice(&self.bytes).map_err(|error| {
            let shown = String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(SHOWN_MAX)]).into_owned();
            CallError::Broken(format!("the answer cannot be understood: {error}: {shown}"))
        })
    }
}

/// Asks, and takes the whole answer, in a limited time.
pub(super) async fn plain(caller: &Caller, ask: Ask) -> Result<Body, CallError> {
    let whole = async {
        let mut answer = open(caller, ask).await?;
        let etag = answer.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        Ok(Body { status: answer.status(), etag, bytes: rest(answer.body_mut(), &caller.address.to_string()).await? })
    };
    in_time(PATIENCE, caller, whole).await
}

/// Asks, and answers as soon as it is known that there is no problem; the body may never end.
pub(super) async fn open(caller: &Caller, ask: Ask) -> Result<Response<Incoming>, CallError> {
    let address = caller.address.to_string();
    let cannot =
        |error: &dyn std::error::Error| CallError::Unreachable(format!("{address} cannot be reached: {error}"));
    let target = (caller.address.host(), caller.address.port());
    let connect = async { TcpStream::connect(target).await.map_err(|error| cannot(&error)) };
    let stream = in_time(CONNECT_PATIENCE, caller, connect).await?;
    // What is asked is short, and its answer is waited for.
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&address, &error))?;
    // It is moved whenever someone waits for an answer, and ends with it.
    tokio::spawn(connection);
    let asked = sender.send_request(ask.request(caller));
    let mut answer = in_time(PATIENCE, caller, async { asked.await.map_err(|error| broken(&address, &error)) }).await?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    let status = answer.status();
    Err(problem(status, &rest(answer.body_mut(), &address).await?, &address))
}

/// The next piece of a body; nothing at its end.
pub(super) async fn piece(body: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    loop {
        let Some(frame) = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await else {
            return Ok(None);
        };
        // What is no data is a trailer, and we know of none.
        if let Ok(bytes) = frame?.into_data() {
            return Ok(Some(bytes));
        }
    }
}

async fn rest(body: &mut Incoming, address: &str) -> Result<Vec<u8>, CallError> {
    let mut bytes = Vec::new();
    while let Some(piece) = piece(body).await.map_err(|error| broken(address, &error))? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > ANSWER_MAX {
            return Err(CallError::Broken(format!("the answer of {address} is longer than {ANSWER_MAX} bytes")));
        }
    }
    Ok(bytes)
}

fn problem(status: StatusCode, bytes: &[u8], address: &str) -> CallError {
    match serde_json::from_slice::<Problem>(bytes) {
        Ok(problem) => CallError::Problem(Box::new(problem)),
        Err(_) => CallError::Broken(format!("{address} answers with {status}, and not as our daemon does")),
    }
}

/// The connection was there, and what came over it is no answer.
fn broken(address: &str, error: &hyper::Error) -> CallError {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return CallError::Unreachable(format!("{address} ended the connection without an answer"));
    }
    CallError::Broken(format!("{address} does not answer as our daemon does: {error}"))
}

async fn in_time<T>(
    patience: Duration,
    caller: &Caller,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    timeout(patience, work).await.unwrap_or_else(|_| {
        let message = format!("{} does not answer within {} s", caller.address, patience.as_secs());
        Err(CallError::Unreachable(message))
    })
}
