//! The feed: what happens, as server-sent events. Who comes back names the last event it has seen, and gets what it has
//! missed; or is told that something is missing, and looks at everything anew.

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

/// When nothing has happened for so long, that is said, so that both sides notice when the other is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Who has lost the connection should wait for so long before it comes back.
const RETRY: Duration = Duration::from_secs(1);
/// Why someone has to look at everything anew.
const GAP: &str = "some events are not kept any longer, or belong to another life of the node";

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/feed", get(feed))
}

/// What is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FeedQuery {
    job: Option<String>,
}

/// What happens from now on.
#[utoipa::path(get, path = "/api/v1/feed", tag = "feed",
    description = "Server-sent events without end. `run` has a run, `job` that one was put or removed, `pause` that a job \
        or everything is paused or goes on, `node` and `store` how they do, and `reset` that something was not told.",
    params(
        ("job" = Option<String>, Query, description = "Only what is about this job, or about everything"),
        ("Last-Event-ID" = Option<String>, Header, description = "Goes on after this event"),
    ),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = "4XX", body = Problem)))]
pub(crate) async fn feed(
    State(app): State<Arc<AppState>>,
    QueryParams(which): QueryParams<FeedQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let job = read("job", which.job.as_deref(), JobId::parse)?;
    let after = headers.get("last-event-id").map(seen).transpose()?;
    let reader = app.feed.reader(after);
    let teller = FeedSender { app, job, names: NodeNames::default() };
    let body = stream::body(move |writer| async move { teller.tell(reader, &writer).await });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, body).into_response())
}

/// The event that someone has seen last.
fn seen(text: &HeaderValue) -> Result<EventId, ApiError> {
    let parsed = text.to_str().ok().and_then(|text| {
        let (epoch, number) = text.trim().split_once('-')?;
        Some(EventId { epoch: u64::from_str_radix(epoch, 16).ok()?, number: number.parse().ok()? })
    });
    parsed.ok_or_else(|| ApiError::new(ProblemCode::BadRequest, "`Last-Event-ID` is not the id of an event"))
}

/// Someone who is told.
struct FeedSender {
    app: Arc<AppState>,
    job: Option<JobId>,
    names: NodeNames,
}

impl FeedSender {
    async fn tell(mut self, mut reader: FeedReader, writer: &StreamWriter) -> Result<(), ReaderGone> {
        // An id without an event: from here on nothing is missed, even if nothing has happened yet.
        writer.write(format!("retry: {}\nid: {}\n\n", RETRY.as_millis(), FeedEventId(reader.position()))).await?;
        let mut quiet = std::pin::pin!(sleep(KEEP_ALIVE));
        loop {
            let read = tokio::select! {
                read = reader.next() => read,
                () = quiet.as_mut() => {
                    // What was not wanted counts as seen.
                    writer.write(format!(": nothing new\nid: {}\n\n", FeedEventId(reader.position()))).await?;
                    quiet.set(sleep(KEEP_ALIVE));
                    continue;
                }
                () = writer.gone() => return Err(ReaderGone),
            };
            let text = match read {
                FeedRead::Gap(id) => event(id, "reset", &FeedReset { why: GAP.to_owned() }),
                FeedRead::Events(events) => self.words(events).await,
            };
            if !text.is_empty() {
                writer.write(text).await?;
                quiet.set(sleep(KEEP_ALIVE));
            }
        }
    }

    /// The events that this reader wants, as they are sent.
    async fn words(&mut self, events: Vec<(EventId, FeedEntry)>) -> String {
        let wanted = |event: &FeedEntry| match (&self.job, event.job()) {
            (Some(wanted), Some(job)) => wanted == job,
            _ => true,
        };
        let events: Vec<(EventId, FeedEntry)> = events.into_iter().filter(|(_, event)| wanted(event)).collect();
        let nodes = events.iter().filter_map(|(_, event)| node(event));
        // A store that fails has no names; ids are good enough then.
        let _ = self.names.learn(&*self.app.store, nodes).await;
        let mut text = String::new();
        for (id, event) in events {
            self.word(&mut text, id, event);
        }
        text
    }

    fn word(&self, text: &mut String, id: EventId, told: FeedEntry) {
        text.push_str(&match told {
            FeedEntry::Run(run) => event(id, "run", &self.names.tell(&run)),
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
            FeedEntry::Store(trouble) => event(id, "store", &StoreChange { away: trouble.is_some(), trouble }),
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

/// An event as it is sent. JSON has no line ends of its own.
fn event(id: EventId, name: &str, value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("what is told is made of texts and numbers");
    let mut text = String::with_capacity(json.len() + 64);
    write!(text, "id: {}\nevent: {name}\ndata: {json}\n\n", FeedEventId(id)).expect("a string takes any text");
    text
}

/// The id of an event as it is sent.
struct FeedEventId(EventId);

impl std::fmt::Display for FeedEventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}-{}", self.0.epoch, self.0.number)
    }
}

#[cfg(test)]
mod tests;
