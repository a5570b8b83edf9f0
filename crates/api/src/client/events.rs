//! The feed of what happens, as Server-Sent Events. A connection that ends is made anew, and goes on after the last event
//! that was seen.

use std::collections::VecDeque;
use std::time::Duration;

use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderName};
use tokio::time::timeout;

use super::exchange::{self, Ask};
use super::{CallError, Client, api};

/// How often a connection is tried anew before the daemon counts as gone.
const TRIES: u32 = 10;
/// How long to wait before it is tried for the first time; then longer each time.
const WAIT: Duration = Duration::from_millis(200);
/// A daemon says that it is there more often than this, also when nothing happens.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The longest line of an event.
const LINE_MAX: usize = 4 * 1024 * 1024;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// By which it is found again.
    pub id: String,
    /// What it is about: `run`, `job`, `pause`, `node`, `store` or `reset`.
    pub kind: String,
    /// What there is to say, as JSON.
    pub text: String,
}

/// The feed, from now on or after an event.
#[derive(Debug)]
pub struct Events<'a> {
    client: &'a Client,
    body: Option<Incoming>,
    last: Option<String>,
    lines: Lines,
    /// How often a connection was tried in vain since there was one.
    tries: u32,
}

impl Client {
    /// What happens from now on, or after the event with the id `after`.
    pub fn events(&self, after: Option<String>) -> Result<Events<'_>, CallError> {
        let mut events = Events { client: self, body: None, last: after, lines: Lines::default(), tries: 0 };
        events.body = Some(self.runtime.block_on(events.connect())?);
        Ok(events)
    }
}

impl Events<'_> {
    /// The next event, however long it takes.
    pub fn next_event(&mut self) -> Result<Event, CallError> {
        let client = self.client;
        client.runtime.block_on(self.wait())
    }

    /// The next event, if there is one within that time.
    pub fn next_within(&mut self, limit: Duration) -> Result<Option<Event>, CallError> {
        let client = self.client;
        // A wait that is given up loses nothing: what was read is kept in `lines`.
        client.runtime.block_on(async { timeout(limit, self.wait()).await.ok().transpose() })
    }

    /// The next event of this connection, however long it takes; nothing, when it has ended, for those who want to know
    /// of it.
    pub fn next_here(&mut self) -> Result<Option<Event>, CallError> {
        let client = self.client;
        client.runtime.block_on(self.here())
    }

    async fn wait(&mut self) -> Result<Event, CallError> {
        loop {
            if let Some(event) = self.here().await? {
                return Ok(event);
            }
            self.body = Some(self.reconnect().await?);
        }
    }

    async fn here(&mut self) -> Result<Option<Event>, CallError> {
        loop {
            if let Some(event) = self.lines.ready.pop_front() {
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
        // Half an event that was cut off comes again as a whole.
        self.lines = Lines::default();
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
        let ask = Ask::new(Method::GET, api().segment("feed")).header(ACCEPT, "text/event-stream");
        let ask = match &self.last {
            Some(last) => ask.header(HeaderName::from_static("last-event-id"), last),
            None => ask,
        };
        Ok(exchange::open(&self.client.caller, ask).await?.into_body())
    }
}

/// Bytes that become lines, and lines that become events.
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
    event: Event,
    ready: VecDeque<Event>,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) -> Result<(), CallError> {
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
            // What has no data is no event, says the specification.
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
            // A line that begins with a colon says only that someone is there.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_events_however_they_are_cut() {
        let text =
            ": here\n\nid: 7\r\nevent: run\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nevent: job\nid: 8\n\ndata:x\n\nid: 9\n";
        let expected = [
            Event { id: "7".to_owned(), kind: "run".to_owned(), text: "{\"a\":\n1}".to_owned() },
            Event { text: "x".to_owned(), ..Event::default() },
        ];
        for size in 1..text.len() {
            let mut lines = Lines::default();
            for piece in text.as_bytes().chunks(size) {
                lines.take(piece).expect("short lines");
            }
            assert_eq!(lines.ready, expected, "{size}");
        }
    }
}
