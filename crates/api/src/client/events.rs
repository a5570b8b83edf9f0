//! The event feed as server-sent events. The client reconnects and resumes after the last received event.

use std::collections::VecDeque;
use std::time::Duration;

use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderName};
use tokio::time::timeout;

use super::exchange::{self, RequestBuilder};
use super::{CallError, DaemonClient, api};

/// Number of reconnect attempts before the daemon counts as unreachable.
const TRIES: u32 = 10;
/// Delay before the first reconnect attempt; it grows with each attempt.
const WAIT: Duration = Duration::from_millis(200);
/// Maximum time between two messages; the daemon sends keep-alives more often.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Maximum length of a line of an event, in bytes.
const LINE_MAX: usize = 4 * 1024 * 1024;

/// An event of the feed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedEvent {
    /// Id, to resume after this event.
    pub id: String,
    /// Kind: `run`, `job`, `pause`, `node`, `store` or `reset`.
    pub kind: String,
    /// Data as JSON.
    pub text: String,
}

/// A subscription to the feed.
#[derive(Debug)]
pub struct FeedStream<'a> {
    client: &'a DaemonClient,
    body: Option<Incoming>,
    last: Option<String>,
    lines: LineBuffer,
    /// Number of failed attempts since the last connection.
    tries: u32,
}

impl DaemonClient {
    /// Subscribes to events from now on, or after the event with the id `after`.
    pub fn events(&self, after: Option<String>) -> Result<FeedStream<'_>, CallError> {
        let mut events = FeedStream { client: self, body: None, last: after, lines: LineBuffer::default(), tries: 0 };
        events.body = Some(self.runtime.block_on(events.connect())?);
        Ok(events)
    }
}

impl FeedStream<'_> {
    /// Waits for the next event.
    pub fn next_event(&mut self) -> Result<FeedEvent, CallError> {
        let client = self.client;
        client.runtime.block_on(self.wait())
    }

    /// Waits for the next event for a limited time.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<FeedEvent>, CallError> {
        let client = self.client;
        // A timeout loses no events: the received bytes are kept in `lines`.
        client.runtime.block_on(async { timeout(limit, self.wait()).await.ok().transpose() })
    }

    /// Waits for the next event on this connection. Returns `None` when it ends, instead of reconnecting.
    pub fn next_here(&mut self) -> Result<Option<FeedEvent>, CallError> {
        let client = self.client;
        client.runtime.block_on(self.here())
    }

    async fn wait(&mut self) -> Result<FeedEvent, CallError> {
        loop {
            if let Some(event) = self.here().await? {
                return Ok(event);
            }
            self.body = Some(self.reconnect().await?);
        }
    }

    async fn here(&mut self) -> Result<Option<FeedEvent>, CallError> {
        loop {
            if let Some(event) = self.lines.next_event() {
                if !event.id.is_empty() {
                    self.last = Some(event.id.clone());
                }
                return Ok(Some(event));
            }
            let Some(body) = &mut self.body else { return Ok(None) };
            match timeout(SILENCE_MAX, exchange::piece(body)).await {
                Ok(Ok(Some(bytes))) => self.lines.take(&bytes)?,
                Ok(Ok(None) | Err(_)) | Err(_) => self.body = None,
            }
        }
    }

    async fn reconnect(&mut self) -> Result<Incoming, CallError> {
        // The daemon sends a truncated event again as a whole.
        self.lines = LineBuffer::default();
        loop {
            match self.connect().await {
                Err(CallError::Unreachable(_)) if self.tries < TRIES => {
                    self.tries += 1;
                    tokio::time::sleep(WAIT * self.tries).await;
                }
                Ok(body) => {
                    self.tries = 0;
                    return Ok(body);
                }
                other => return other,
            }
        }
    }

    async fn connect(&self) -> Result<Incoming, CallError> {
        let request = RequestBuilder::new(Method::GET, api().segment("feed")).header(ACCEPT, "text/event-stream");
        let request = match &self.last {
            Some(last) => request.header(HeaderName::from_static("last-event-id"), last),
            None => request,
        };
        Ok(exchange::open(&self.client.caller, request).await?.into_body())
    }
}

/// Parser of the event stream.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    partial: Vec<u8>,
    event: FeedEvent,
    ready: VecDeque<FeedEvent>,
}

impl LineBuffer {
    /// The next complete event.
    pub(super) fn next_event(&mut self) -> Option<FeedEvent> {
        self.ready.pop_front()
    }

    /// Adds bytes of the stream.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        self.partial.extend_from_slice(bytes);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            self.line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
        }
        if self.partial.len() > LINE_MAX {
            return Err(CallError::Broken(format!("the feed has a line longer than {LINE_MAX} bytes")));
        }
        Ok(())
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            // The specification discards events without data.
            if !event.text.is_empty() {
                self.ready.push_back(event);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => value.clone_into(&mut self.event.id),
            "event" => value.clone_into(&mut self.event.kind),
            "data" => {
                if !self.event.text.is_empty() {
                    self.event.text.push('\n');
                }
                self.event.text.push_str(value);
            }
            // A line that begins with a colon is a comment: a keep-alive.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_parsed_for_any_chunking() {
        let text =
            ": here\n\nid: 7\r\nevent: run\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nevent: job\nid: 8\n\ndata:x\n\nid: 9\n";
        let expected = [
            FeedEvent { id: "7".to_owned(), kind: "run".to_owned(), text: "{\"a\":\n1}".to_owned() },
            FeedEvent { text: "x".to_owned(), ..FeedEvent::default() },
        ];
        for size in 1..text.len() {
            let mut lines = LineBuffer::default();
            for piece in text.as_bytes().chunks(size) {
                lines.take(piece).expect("short lines");
            }
            assert_eq!(lines.ready, expected, "{size}");
        }
    }
}
