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
use cronhold_core::JobId;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::runs::read;
use crate::AppState;
use crate::extract::QueryParams;
use crate::feed::{BATCH_MAX, EventId, FeedEntry, FeedRead, FeedReader, KeptEvent};
use crate::node_names::NodeNames;
use crate::problem::ApiError;
use crate::stream::{self, ReaderGone, StreamWriter};

/// Interval of keep-alive messages on an idle feed, with which both sides detect a lost connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Length of a part of the response, in bytes, after which another one begins. It bounds what is buffered for a client
/// that does not read.
const PART_LENGTH: usize = 64 * 1024;
/// Pause after a client has received all events, in which more can gather. Many clients thus cost little while many
/// events occur; an event after a quiet time is sent at once.
const GATHER: Duration = Duration::from_millis(50);
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
            let (is_sent, has_all) = match read {
                FeedRead::Gap(id) => {
                    let text = event("reset", &FeedReset { why: GAP.to_owned() });
                    writer.write(format!("id: {}\n{text}", FeedEventId(id))).await?;
                    (true, true)
                }
                FeedRead::Events(events) => (self.send_batch(&events, writer).await?, events.len() < BATCH_MAX),
            };
            if is_sent {
                quiet.set(sleep(KEEP_ALIVE));
            }
            if has_all {
                sleep(GATHER).await;
            }
        }
    }

    /// Sends the events that match the filter of the client. Returns whether there were any.
    async fn send_batch(
        &mut self,
        events: &[(EventId, Arc<KeptEvent>)],
        writer: &StreamWriter,
    ) -> Result<bool, ReaderGone> {
        let wanted: Vec<&(EventId, Arc<KeptEvent>)> =
            events.iter().filter(|(_, event)| self.is_wanted(&event.entry)).collect();
        // If the store fails, runs show the ids of nodes instead of their names.
        let nodes = wanted.iter().filter_map(|(_, event)| event.node_to_name());
        let _ = self.names.learn(&*self.app.store, nodes).await;
        let mut part = String::new();
        for (id, event) in &wanted {
            let text = event.text(|entry| self.format(entry));
            write!(part, "id: {}\n{text}", FeedEventId(*id)).expect("writing to a string does not fail");
            if part.len() >= PART_LENGTH {
                writer.write(std::mem::take(&mut part)).await?;
            }
        }
        if !part.is_empty() {
            writer.write(part).await?;
        }
        Ok(!wanted.is_empty())
    }

    fn is_wanted(&self, entry: &FeedEntry) -> bool {
        match (&self.job, entry.job()) {
            (Some(wanted), Some(job)) => wanted == job,
            _ => true,
        }
    }

    fn format(&self, entry: &FeedEntry) -> String {
        match entry {
            FeedEntry::Run(run) => event("run", &self.names.summary(run)),
            FeedEntry::Job(job, revision) => event("job", &JobChange { id: job.to_string(), revision: *revision }),
            FeedEntry::Pause(job, pause) => {
                let pause = pause.as_ref().map(|pause| PauseSummary {
                    since: pause.since,
                    until: pause.until,
                    by: pause.by.to_string(),
                    why: pause.why.clone(),
                    everything: job.is_none(),
                });
                event("pause", &PauseChange { job: job.as_ref().map(ToString::to_string), pause })
            }
            FeedEntry::Node(message) => event("node", &NodeChange { message: message.clone() }),
            FeedEntry::Store(trouble) => {
                event("store", &StoreChange { failing: trouble.is_some(), trouble: trouble.clone() })
            }
        }
    }
}

/// An event as text, without its id. The JSON has no line breaks.
fn event(name: &str, value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("events consist of strings and numbers");
    format!("event: {name}\ndata: {json}\n\n")
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
