//! One request and its response, on a connection of its own.

use std::fs;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::address::RequestPath;
use super::{CallError, CallerOptions, PATIENCE};
use crate::{Problem, SOCKET};

/// Timeout of the connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of a response that is read as a whole, in bytes.
const RESPONSE_MAX: usize = 64 * 1024 * 1024;
/// Maximum length of an unexpected response in an error message.
const SHOWN_MAX: usize = 200;

/// Builder of a request.
#[derive(Debug)]
pub(super) struct RequestBuilder {
    method: Method,
    path: RequestPath,
    headers: HeaderMap,
    body: String,
}

impl RequestBuilder {
    pub(super) fn new(method: Method, path: RequestPath) -> Self {
        Self { method, path, headers: HeaderMap::new(), body: String::new() }
    }

    /// Sets a JSON body.
    pub(super) fn json(self, body: &impl Serialize) -> Self {
        let text = serde_json::to_string(body).expect("bodies are plain structs with string keys");
        self.text("application/json", text)
    }

    /// Sets a body with the given content type.
    pub(super) fn text(mut self, kind: &'static str, text: String) -> Self {
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        self.body = text;
        self
    }

    /// Adds a header. Characters that are not allowed in a header are encoded, so that different values stay different.
    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        let mut plain = String::new();
        for byte in value.bytes() {
            match byte {
                b' '..=b'~' => plain.push(char::from(byte)),
                _ => plain.push_str(&format!("%{byte:02X}")),
            }
        }
        self.headers.insert(name, HeaderValue::from_str(&plain).expect("all other characters are encoded"));
        self
    }

    pub(super) fn request(self, caller: &CallerOptions) -> Request<String> {
        let mut builder = self.header(HOST, caller.address.authority()).header(USER_AGENT, "cronhold");
        if let (Some(token), None) = (&caller.token, &caller.local) {
            builder = builder.header(AUTHORIZATION, &format!("Bearer {token}"));
        }
        if let Some(user) = &caller.user {
            builder = builder.header(HeaderName::from_static("x-cronhold-user"), user);
        }
        builder.headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        let mut request = Request::new(builder.body);
        *request.method_mut() = builder.method;
        *request.uri_mut() = builder.path.as_str().parse().expect("paths are percent-encoded");
        *request.headers_mut() = builder.headers;
        request
    }
}

/// A complete response.
#[derive(Debug)]
pub(super) struct ResponseBody {
    pub(super) status: StatusCode,
    pub(super) etag: Option<String>,
    bytes: Vec<u8>,
}

impl ResponseBody {
    /// Parses the body.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_slice(&self.bytes).map_err(|error| {
            let shown = String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(SHOWN_MAX)]).into_owned();
            CallError::Broken(format!("unexpected response: {error}: {shown}"))
        })
    }
}

/// Sends a request and reads the whole response within a time limit.
pub(super) async fn plain(caller: &CallerOptions, request: RequestBuilder) -> Result<ResponseBody, CallError> {
    let whole = async {
        let mut response = open(caller, request).await?;
        let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        Ok(ResponseBody {
            status: response.status(),
            etag,
            bytes: rest(response.body_mut(), &caller.address.to_string()).await?,
        })
    };
    in_time(PATIENCE, caller, whole).await
}

/// Sends a request and returns after the response head. The body may be an endless stream.
pub(super) async fn open(caller: &CallerOptions, request: RequestBuilder) -> Result<Response<Incoming>, CallError> {
    let address = caller.address.to_string();
    let mut sender = connect(caller).await?;
    let pending = sender.send_request(request.request(caller));
    let mut response =
        in_time(PATIENCE, caller, async { pending.await.map_err(|error| broken(&address, &error)) }).await?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    Err(problem(status, &rest(response.body_mut(), &address).await?, &address))
}

/// Opens a connection.
pub(super) async fn connect(caller: &CallerOptions) -> Result<SendRequest<String>, CallError> {
    let address = caller.address.to_string();
    match &caller.local {
        Some(data) => {
            let connect = async { connect_local(data).map_err(|error| cannot_connect(&data.join(SOCKET), &error)) };
            handshake(in_time(CONNECT_TIMEOUT, caller, connect).await?, &address).await
        }
        None => {
            let target = (caller.address.host(), caller.address.port());
            let connect =
                async { TcpStream::connect(target).await.map_err(|error| cannot_connect(Path::new(&address), &error)) };
            let stream = in_time(CONNECT_TIMEOUT, caller, connect).await?;
            // Requests are small, and the caller waits for the response.
            let _ = stream.set_nodelay(true);
            handshake(stream, &address).await
        }
    }
}

/// Connects by the directory's descriptor, because the path of a socket is limited to about a hundred bytes.
fn connect_local(data: &Path) -> io::Result<UnixStream> {
    let dir = fs::File::open(data)?;
    let stream = net::UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd()))?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

fn cannot_connect(to: &Path, error: &io::Error) -> CallError {
    CallError::Unreachable(format!("cannot connect to {}: {error}", to.display()))
}

async fn handshake<S>(stream: S, address: &str) -> Result<SendRequest<String>, CallError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(address, &error))?;
    // The task makes progress while the runtime waits for the response, and ends with the connection.
    tokio::spawn(connection);
    Ok(sender)
}

/// The next piece of a body, or `None` at its end.
pub(super) async fn piece(body: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    loop {
        let Some(frame) = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await else {
            return Ok(None);
        };
        // A frame that is not data is a trailer, which the API does not use.
        if let Ok(bytes) = frame?.into_data() {
            return Ok(Some(bytes));
        }
    }
}

pub(super) async fn rest(body: &mut Incoming, address: &str) -> Result<Vec<u8>, CallError> {
    let mut bytes = Vec::new();
    while let Some(piece) = piece(body).await.map_err(|error| broken(address, &error))? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > RESPONSE_MAX {
            return Err(CallError::Broken(format!("the response of {address} is longer than {RESPONSE_MAX} bytes")));
        }
    }
    Ok(bytes)
}

pub(super) fn problem(status: StatusCode, bytes: &[u8], address: &str) -> CallError {
    match serde_json::from_slice::<Problem>(bytes) {
        Ok(problem) => CallError::Problem(Box::new(problem)),
        Err(_) => CallError::Broken(format!("unexpected response from {address}: status {status}")),
    }
}

/// The error of a connection that was established but returned no valid response.
pub(super) fn broken(address: &str, error: &hyper::Error) -> CallError {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return CallError::Unreachable(format!("{address} closed the connection without a response"));
    }
    CallError::Broken(format!("unexpected response from {address}: {error}"))
}

async fn in_time<T>(
    patience: Duration,
    caller: &CallerOptions,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    timeout(patience, work).await.unwrap_or_else(|_| {
        let message = format!("{} did not respond within {} s", caller.address, patience.as_secs());
        Err(CallError::Unreachable(message))
    })
}
