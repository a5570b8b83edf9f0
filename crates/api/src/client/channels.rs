//! Requests about channels, and a stream of their messages; queues and worker processes.

use hyper::Method;
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::events::{LineBuffer, SILENCE_MAX};
use super::exchange::{self, RequestBuilder};
use super::runs::with_key;
use super::{CallError, DaemonClient, RequestPath, api};
use crate::{ChannelList, ClassesBody, PublishBody, PublishedMessage, QueueReport, WorkerReport};

/// Messages of channels as they are published.
#[derive(Debug)]
pub struct ChannelStream<'a> {
    client: &'a DaemonClient,
    body: Incoming,
    lines: LineBuffer,
}

impl DaemonClient {
    /// Loads a page of channels with subscribers, ordered by name, after the channel `after`.
    pub fn channel_page(&self, after: Option<&str>, limit: usize) -> Result<ChannelList, CallError> {
        self.get(api().segment("channels").with_some("after", after).with("limit", limit))
    }

    /// Publishes a message. The same key never publishes twice.
    pub fn publish(&self, channel: &str, body: &PublishBody, key: Option<&str>) -> Result<(), CallError> {
        let request = RequestBuilder::new(Method::POST, channel_path(channel)).json(body);
        self.send(with_key(request, key)).map(drop)
    }

    /// Listens to channels from now on. There must be at least one.
    pub fn channel_messages(&self, channels: &[String]) -> Result<ChannelStream<'_>, CallError> {
        let (first, more) = channels.split_first().map_or(("/", channels), |(first, more)| (first.as_str(), more));
        let path = channel_path(first).with_some("also", Some(more.join("\n")).filter(|more| !more.is_empty()));
        let request = RequestBuilder::new(Method::GET, path).header(ACCEPT, "text/event-stream");
        let body = self.runtime.block_on(exchange::open(&self.caller, request))?.into_body();
        Ok(ChannelStream { client: self, body, lines: LineBuffer::default() })
    }

    /// Lists the queues with their classes.
    pub fn queues(&self) -> Result<Vec<QueueReport>, CallError> {
        self.get(api().segment("queues"))
    }

    /// Registers the classes of a worker that uses only the API.
    pub fn register_classes(&self, queue: &str, body: &ClassesBody) -> Result<QueueReport, CallError> {
        self.post(api().segment("queues").segment(queue).segment("classes"), body)
    }

    /// Lists the worker processes that are alive.
    pub fn workers(&self) -> Result<Vec<WorkerReport>, CallError> {
        self.get(api().segment("workers"))
    }

    /// Makes a worker process begin no further steps.
    pub fn quiet_worker(&self, worker: &str) -> Result<(), CallError> {
        self.signal_worker(worker, "quiet")
    }

    /// Makes a worker process finish its steps and exit.
    pub fn stop_worker(&self, worker: &str) -> Result<(), CallError> {
        self.signal_worker(worker, "stop")
    }

    fn signal_worker(&self, worker: &str, signal: &str) -> Result<(), CallError> {
        let path = api().segment("workers").segment(worker).segment(signal);
        self.send(RequestBuilder::new(Method::POST, path).json(&Value::Object(Map::new()))).map(drop)
    }
}

impl ChannelStream<'_> {
    /// Waits for the next message. Returns `None` when the connection ends.
    pub fn next_message(&mut self) -> Result<Option<PublishedMessage>, CallError> {
        let client = self.client;
        client.runtime.block_on(self.wait())
    }

    async fn wait(&mut self) -> Result<Option<PublishedMessage>, CallError> {
        loop {
            if let Some(event) = self.lines.next_event() {
                let read = serde_json::from_str(&event.text);
                return read.map(Some).map_err(|error| CallError::Broken(format!("unexpected message: {error}")));
            }
            match timeout(SILENCE_MAX, exchange::piece(&mut self.body)).await {
                Ok(Ok(Some(bytes))) => self.lines.take(&bytes)?,
                Ok(Ok(None) | Err(_)) | Err(_) => return Ok(None),
            }
        }
    }
}

/// The path of a channel: its name without the first slash is one segment.
fn channel_path(channel: &str) -> RequestPath {
    let channels = api().segment("channels");
    match channel.strip_prefix('/') {
        Some(rest) => channels.segment(rest),
        None => channels.segment(channel).with("relative", true),
    }
}
