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
use cronhold_api::{Code, JobChange, NodeChange, Pause, PauseChange, Problem, Reset, StoreChange};
use cronhold_core::JobId;
use cronhold_core::record::Run;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::runs::read;
use crate::App;
use crate::extract::Asked;
use crate::feed::{Event, EventId, Read, Reader};
use crate::node_names::NodeNames;
use crate::problem::Denied;
use crate::stream::{self, Gone, Writer};

/// When nothing has happened for so long, that is said, so that both sides notice when the other is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Who has lost the connection should wait for so long before it comes back.
const RETRY: Duration = Duration::from_secs(1);
/// Why someone has to look at everything anew.
const GAP: &str = "some events are not kept any longer, or belong to another life of the node";

/// The routes.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/v1/feed", get(feed))
}

/// What is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
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
    State(app): State<Arc<App>>,
    Asked(which): Asked<Which>,
    headers: HeaderMap,
) -> Result<Response, Denied> {
    let job = read("job", which.job.as_deref(), JobId::parse)?;
    let after = headers.get("last-event-id").map(seen).transpose()?;
    let reader = app.feed.reader(after);
    let teller = Teller { app, job, names: NodeNames::default() };
    let body = stream::body(move |writer| async move { teller.tell(reader, &writer).await });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, body).into_response())
}

/// The event that someone has seen last.
fn seen(text: &HeaderValue) -> Result<EventId, Denied> {
    let parsed = text.to_str().ok().and_then(|text| {
        let (epoch, number) = text.trim().split_once('-')?;
        Some(EventId { epoch: u64::from_str_radix(epoch, 16).ok()?, number: number.parse().ok()? })
    });
    parsed.ok_or_else(|| Denied::new(Code::BadRequest, "`Last-Event-ID` is not the id of an event"))
}

/// Someone who is told.
struct Teller {
    app: Arc<App>,
    job: Option<JobId>,
    names: NodeNames,
}

impl Teller {
    async fn tell(mut self, mut reader: Reader, writer: &Writer) -> Result<(), Gone> {
        // An id without an event: from here on nothing is missed, even if nothing has happened yet.
        writer.write(format!("retry: {}\nid: {}\n\n", RETRY.as_millis(), Id(reader.position()))).await?;
        let mut quiet = std::pin::pin!(sleep(KEEP_ALIVE));
        loop {
            let read = tokio::select! {
                read = reader.next() => read,
                () = quiet.as_mut() => {
                    // What was not wanted counts as seen.
                    writer.write(format!(": nothing new\nid: {}\n\n", Id(reader.position()))).await?;
                    quiet.set(sleep(KEEP_ALIVE));
                    continue;
                }
                () = writer.gone() => return Err(Gone),
            };
            let text = match read {
                Read::Gap(id) => event(id, "reset", &Reset { why: GAP.to_owned() }),
                Read::Events(events) => self.words(events).await,
            };
            if !text.is_empty() {
                writer.write(text).await?;
                quiet.set(sleep(KEEP_ALIVE));
            }
        }
    }

    /// The events that this reader wants, as they are sent.
    async fn words(&mut self, events: Vec<(EventId, Event)>) -> String {
        let wanted = |event: &Event| match (&self.job, event.job()) {
            (Some(wanted), Some(job)) => wanted == job,
            _ => true,
        };
        let events: Vec<(EventId, Event)> = events.into_iter().filter(|(_, event)| wanted(event)).collect();
        let runs = events.iter().filter_map(|(_, event)| run(event));
        // A store that fails has no names; ids are good enough then.
        let _ = self.names.learn(&*self.app.store, runs).await;
        let mut text = String::new();
        for (id, event) in events {
            self.word(&mut text, id, event);
        }
        text
    }

    fn word(&self, text: &mut String, id: EventId, told: Event) {
        text.push_str(&match told {
            Event::Run(run) => event(id, "run", &self.names.tell(&run)),
            Event::Job(job, revision) => event(id, "job", &JobChange { id: job.to_string(), revision }),
            Event::Pause(job, pause) => {
                let everything = job.is_none();
                let pause = pause.map(|pause| Pause {
                    since: pause.since,
                    by: pause.by.to_string(),
                    why: pause.why,
                    everything,
                });
                event(id, "pause", &PauseChange { job: job.map(|job| job.to_string()), pause })
            }
            Event::Node(message) => event(id, "node", &NodeChange { message }),
            Event::Store(trouble) => event(id, "store", &StoreChange { away: trouble.is_some(), trouble }),
        });
    }
}

fn run(event: &Event) -> Option<&Run> {
    match event {
        Event::Run(run) => Some(run),
        _ => None,
    }
}

/// An event as it is sent. JSON has no line ends of its own.
fn event(id: EventId, name: &str, value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("what is told is made of texts and numbers");
    let mut text = String::with_capacity(json.len() + 64);
    write!(text, "id: {}\nevent: {name}\ndata: {json}\n\n", Id(id)).expect("a string takes any text");
    text
}

/// The id of an event as it is sent.
struct Id(EventId);

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}-{}", self.0.epoch, self.0.number)
    }
}

#[cfg(test)]
mod tests;
