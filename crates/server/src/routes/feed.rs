//! The event feed as server-sent events. A client that reconnects sends the id of the last event it received, and gets
//! the events since then. If these are no longer kept, it gets a `reset` event and must reload its state.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cronhold_api::{FeedReset, JobChange, NodeChange, PauseChange, PauseSummary, Problem, ProblemCode, StoreChange};
use cronhold_core::{JobId, NodeId};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::runs::read;
use crate::AppState;
use crate::extract::QueryParams;
use crate::feed::{EventId, FeedEntry, FeedRead, FeedReader};
use crate::node_names::NodeNames;
use crate::problem::ApiError;
use crate::stream::{self, ReaderGone, StreamWriter};

/// Interval of keep-alive messages on an idle feed, with which both sides detect a lost connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Delay before a client reconnects.
const RETRY: Duration = Duration::from_secs(1);
/// The reason in a `reset` event.
const GAP: &str = "some events are no longer kept, or the node has restarted";

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/feed", get(feed))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FeedQuery {
    job: Option<String>,
}

/// Stream events
#[utoipa::path(get, path = "/api/v1/feed", tag = "feed",
    description = "Server-sent events from now on, without end. `run`: a run was created or has changed. `job`: a job \
        was added, changed or removed. `pause`: a job, or everything, was paused or resumed. `node`: a message about \
        the node. `store`: the store failed or recovered. `reset`: events may be missing, and the client must reload \
        its state.",
    params(
        ("job" = Option<String>, Query, description = "Only events of this job, and events that concern all jobs"),
        ("Last-Event-ID" = Option<String>, Header, description = "Resume after this event"),
    ),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = "4XX", body = Problem)))]
pub(crate) async fn feed(
    State(app): State<Arc<AppState>>,
    QueryParams(which): QueryParams<FeedQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let job = read("job", which.job.as_deref(), JobId::parse)?;
    let after = headers.get("last-event-id").map(parse_event_id).transpose()?;
    let reader = app.feed.reader(after);
    let sender = FeedSender { app, job, names: NodeNames::default() };
    let body = stream::body(move |writer| async move { sender.send_all(reader, &writer).await });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, body).into_response())
}

/// Parses the id of the last event that a client received.
fn parse_event_id(text: &HeaderValue) -> Result<EventId, ApiError> {
    let parsed = text.to_str().ok().and_then(|text| {
        let (epoch, number) = text.trim().split_once('-')?;
        Some(EventId { epoch: u64::from_str_radix(epoch, 16).ok()?, number: number.parse().ok()? })
    });
    parsed.ok_or_else(|| ApiError::new(ProblemCode::BadRequest, "`Last-Event-ID` is not the id of an event"))
}

/// Sends events to one client.
struct FeedSender {
    app: Arc<AppState>,
    job: Option<JobId>,
    names: NodeNames,
}

impl FeedSender {
    async fn send_all(mut self, mut reader: FeedReader, writer: &StreamWriter) -> Result<(), ReaderGone> {
        // An id without an event: a client that disconnects before the first event can resume here.
        writer.write(format!("retry: {}\nid: {}\n\n", RETRY.as_millis(), FeedEventId(reader.position()))).await?;
        let mut quiet = std::pin::pin!(sleep(KEEP_ALIVE));
        loop {
            let read = tokio::select! {
                read = reader.next() => read,
                () = quiet.as_mut() => {
                    // Advances the id of the client past events that its filter excludes.
                    writer.write(format!(": keep-alive\nid: {}\n\n", FeedEventId(reader.position()))).await?;
                    quiet.set(sleep(KEEP_ALIVE));
                    continue;
                }
                () = writer.gone() => return Err(ReaderGone),
            };
            let text = match read {
                FeedRead::Gap(id) => event(id, "reset", &FeedReset { why: GAP.to_owned() }),
                FeedRead::Events(events) => self.format_all(events).await,
            };
            if !text.is_empty() {
                writer.write(text).await?;
                quiet.set(sleep(KEEP_ALIVE));
            }
        }
    }

    /// The events that match the filter of the client, as text.
    async fn format_all(&mut self, events: Vec<(EventId, FeedEntry)>) -> String {
        let wanted = |event: &FeedEntry| match (&self.job, event.job()) {
            (Some(wanted), Some(job)) => wanted == job,
            _ => true,
        };
        let events: Vec<(EventId, FeedEntry)> = events.into_iter().filter(|(_, event)| wanted(event)).collect();
        let nodes = events.iter().filter_map(|(_, event)| node(event));
        // If the store fails, runs show the ids of nodes instead of their names.
        let _ = self.names.learn(&*self.app.store, nodes).await;
        let mut text = String::new();
        for (id, event) in events {
            self.format(&mut text, id, event);
        }
        text
    }

    fn format(&self, text: &mut String, id: EventId, entry: FeedEntry) {
        text.push_str(&match entry {
            FeedEntry::Run(run) => event(id, "run", &self.names.summary(&run)),
            FeedEntry::Job(job, revision) => event(id, "job", &JobChange { id: job.to_string(), revision }),
            FeedEntry::Pause(job, pause) => {
                let everything = job.is_none();
                let pause = pause.map(|pause| PauseSummary {
                    since: pause.since,
                    by: pause.by.to_string(),
                    why: pause.why,
                    everything,
                });
                event(id, "pause", &PauseChange { job: job.map(|job| job.to_string()), pause })
            }
            FeedEntry::Node(message) => event(id, "node", &NodeChange { message }),
            FeedEntry::Store(trouble) => event(id, "store", &StoreChange { failing: trouble.is_some(), trouble }),
        });
    }
}

/// The node of the run that an event is about.
fn node(event: &FeedEntry) -> Option<NodeId> {
    match event {
        FeedEntry::Run(run) => run.node(),
        _ => None,
    }
}

/// An event as text. The JSON has no line breaks.
fn event(id: EventId, name: &str, value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("events consist of strings and numbers");
    let mut text = String::with_capacity(json.len() + 64);
    write!(text, "id: {}\nevent: {name}\ndata: {json}\n\n", FeedEventId(id))
        .expect("writing to a string does not fail");
    text
}

/// The text form of an event id.
struct FeedEventId(EventId);

impl std::fmt::Display for FeedEventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}-{}", self.0.epoch, self.0.number)
    }
}

#[cfg(test)]
mod tests;
