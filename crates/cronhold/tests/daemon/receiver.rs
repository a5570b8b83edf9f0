//! A receiver of webhooks that fails, hangs and breaks off, and counts what it gets by idempotency key.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the receiver does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaction {
    Accept,
    /// Replies with status 500.
    Fail,
    /// Replies with a success that breaks off.
    Truncate,
    /// Keeps the connection open and never replies.
    Hang,
}

/// A request that the receiver has read completely.
#[derive(Debug, Clone)]
pub(crate) struct WebhookRequest {
    pub(crate) line: String,
    /// Headers by lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    pub(crate) reaction: Reaction,
}

impl WebhookRequest {
    pub(crate) fn key(&self) -> &str {
        &self.headers["idempotency-key"]
    }
}

/// A receiver on a port of its own. Its threads end with the test process.
pub(crate) struct WebhookReceiver {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<WebhookRequest>>>,
}

impl WebhookReceiver {
    /// Starts a receiver. `react` decides by the request and how often its key was received before.
    pub(crate) fn start(react: fn(&WebhookRequest, usize) -> Reaction) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests: Arc<Mutex<Vec<WebhookRequest>>> = Arc::default();
        let received = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let received = Arc::clone(&received);
                thread::spawn(move || serve(stream, &received, react));
            }
        });
        Self { port, requests }
    }

    /// All requests so far, in their order.
    pub(crate) fn requests(&self) -> Vec<WebhookRequest> {
        self.requests.lock().expect("no thread panics with it").clone()
    }

    /// How often each key was accepted.
    pub(crate) fn accepted(&self) -> BTreeMap<String, usize> {
        let mut accepted = BTreeMap::new();
        for request in self.requests().iter().filter(|request| request.reaction == Reaction::Accept) {
            *accepted.entry(request.key().to_owned()).or_default() += 1;
        }
        accepted
    }
}

fn serve(
    mut stream: TcpStream,
    received: &Mutex<Vec<WebhookRequest>>,
    react: fn(&WebhookRequest, usize) -> Reaction,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        // The sender may have been killed in the middle of its request.
        if reader.read_line(&mut header).ok()? == 0 {
            return None;
        }
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let mut request = WebhookRequest { line: line.trim_end().to_owned(), headers, body, reaction: Reaction::Accept };
    let mut all = received.lock().expect("no thread panics with it");
    let before = all.iter().filter(|other| other.key() == request.key()).count();
    request.reaction = react(&request, before);
    all.push(request.clone());
    drop(all);
    let reply: &[u8] = match request.reaction {
        Reaction::Accept => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        Reaction::Fail => b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
        Reaction::Truncate => b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\nok",
        Reaction::Hang => {
            // Until the other side gives up.
            let _ = reader.read_to_end(&mut Vec::new());
            return None;
        }
    };
    stream.write_all(reply).ok()
}
