//! Requests to the task store of a daemon. Unlike other requests, these share connections, because a worker process sends
//! many, and their errors tell whether the daemon may have received the request.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cronhold_store::tasks::ChannelMessage;
use hyper::Method;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use super::exchange::{self, RequestBuilder};
use super::{CallError, CallerOptions, PATIENCE, api};
use crate::{ListenBody, Problem};

/// Connections that are kept for further requests.
const IDLE_MAX: usize = 8;
/// How long an idle connection is kept. The daemon closes it after 60 seconds.
const IDLE_TIME: Duration = Duration::from_secs(20);
/// Maximum length of a message on a channel, in bytes. A message has at most 1 MiB, which escapes can make longer.
const MESSAGE_MAX: usize = 8 * 1024 * 1024;

/// Sends requests to the task store of a daemon. Its methods run inside an executor of tokio.
#[derive(Debug)]
pub struct TaskStoreClient {
    caller: CallerOptions,
    idle: Mutex<Vec<IdleConnection>>,
}

/// Why a request to the task store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskCallError {
    /// The daemon has not received the request.
    #[error("{0}")]
    NotSent(String),
    /// The request was sent, and no complete response arrived. The daemon may have carried it out.
    #[error("{0}")]
    Unconfirmed(String),
    /// The daemon responded with an error, and has not carried out the request.
    #[error(transparent)]
    Problem(Box<Problem>),
}

#[derive(Debug)]
struct IdleConnection {
    sender: SendRequest<String>,
    since: Instant,
}

/// Messages on channels, as the daemon sends them.
#[derive(Debug)]
pub struct MessageStream {
    body: Incoming,
    buffer: Vec<u8>,
    address: String,
}

impl TaskStoreClient {
    /// Creates a client. Sends nothing yet.
    pub const fn new(caller: CallerOptions) -> Self {
        Self { caller, idle: Mutex::new(Vec::new()) }
    }

    /// The daemon, and the identity of the caller.
    pub const fn caller(&self) -> &CallerOptions {
        &self.caller
    }

    /// Calls a method of the task store.
    pub async fn call<T: DeserializeOwned>(&self, method: &str, body: &impl Serialize) -> Result<T, TaskCallError> {
        let text = serde_json::to_string(body).expect("bodies are plain structs with string keys");
        loop {
            let (mut sender, is_reused) = match self.take_idle() {
                Some(sender) => (sender, true),
                None => (exchange::connect(&self.caller).await.map_err(|error| not_sent(&error))?, false),
            };
            let path = api().segment("task-store").segment(method);
            let request = RequestBuilder::new(Method::POST, path).text("application/json", text.clone());
            if let Err(error) = sender.ready().await {
                match is_reused {
                    true => continue,
                    false => return Err(not_sent(&exchange::broken(&self.address(), &error))),
                }
            }
            let pending = async {
                let response = sender.send_request(request.request(&self.caller)).await;
                let mut response = match response {
                    Ok(response) => response,
                    // The connection was closed before the request was sent.
                    Err(error) if error.is_canceled() && is_reused => return Ok(None),
                    Err(error) if error.is_canceled() => {
                        return Err(not_sent(&exchange::broken(&self.address(), &error)));
                    }
                    Err(error) => return Err(unconfirmed(&exchange::broken(&self.address(), &error))),
                };
                let bytes =
                    exchange::rest(response.body_mut(), &self.address()).await.map_err(|error| unconfirmed(&error))?;
                Ok(Some((response.status(), bytes)))
            };
            let Ok(response) = timeout(PATIENCE, pending).await else {
                let message = format!("{} did not respond within {} s", self.caller.address, PATIENCE.as_secs());
                return Err(TaskCallError::Unconfirmed(message));
            };
            let Some((status, bytes)) = response? else { continue };
            self.keep_idle(sender);
            if !status.is_success() {
                return Err(match exchange::problem(status, &bytes, &self.address()) {
                    CallError::Problem(problem) => TaskCallError::Problem(problem),
                    other => unconfirmed(&other),
                });
            }
            return serde_json::from_slice(&bytes)
                .map_err(|error| TaskCallError::Unconfirmed(format!("unexpected response: {error}")));
        }
    }

    /// Listens to messages on channels.
    pub async fn listen(&self, body: &ListenBody) -> Result<MessageStream, TaskCallError> {
        let path = api().segment("task-store").segment("listen");
        let response = exchange::open(&self.caller, RequestBuilder::new(Method::POST, path).json(body)).await;
        match response {
            Ok(response) => {
                Ok(MessageStream { body: response.into_body(), buffer: Vec::new(), address: self.address() })
            }
            Err(CallError::Problem(problem)) => Err(TaskCallError::Problem(problem)),
            // Listening changes nothing, so it does not matter whether the daemon has received it.
            Err(error) => Err(not_sent(&error)),
        }
    }

    fn address(&self) -> String {
        self.caller.address.to_string()
    }

    fn take_idle(&self) -> Option<SendRequest<String>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| connection.since.elapsed() < IDLE_TIME && !connection.sender.is_closed());
        idle.pop().map(|connection| connection.sender)
    }

    fn keep_idle(&self, sender: SendRequest<String>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(IdleConnection { sender, since: Instant::now() });
        }
    }
}

impl MessageStream {
    /// The next message; an error if the connection is lost, after which the stream is of no use.
    pub async fn next(&mut self) -> Result<ChannelMessage, TaskCallError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                // An empty line keeps the connection alive.
                if line.len() > 1 {
                    let read = serde_json::from_slice(&line);
                    return read.map_err(|error| TaskCallError::Unconfirmed(format!("unexpected message: {error}")));
                }
                continue;
            }
            let piece = exchange::piece(&mut self.body).await;
            let piece = piece.map_err(|error| unconfirmed(&exchange::broken(&self.address, &error)))?;
            let Some(piece) = piece else {
                return Err(TaskCallError::Unconfirmed(format!("{} closed the connection", self.address)));
            };
            self.buffer.extend_from_slice(&piece);
            if self.buffer.len() > MESSAGE_MAX {
                let message = format!("a message of {} is longer than {MESSAGE_MAX} bytes", self.address);
                return Err(TaskCallError::Unconfirmed(message));
            }
        }
    }
}

fn not_sent(error: &CallError) -> TaskCallError {
    TaskCallError::NotSent(error.to_string())
}

fn unconfirmed(error: &CallError) -> TaskCallError {
    TaskCallError::Unconfirmed(error.to_string())
}
