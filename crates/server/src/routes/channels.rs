//! Channels: which have subscribers, publishing, and messages as server-sent events. The path after `/channels` is the
//! name of the channel.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{ChannelList, Problem, ProblemCode, PublishBody, PublishedMessage, SubscribedChannel};
use cronhold_core::task::{Channel, TaskAct};
use cronhold_store::tasks::ChannelListener;
use serde::Deserialize;
use tokio::time::sleep;

use super::runs::read;
use super::tasks::{commit, task_store, unit};
use crate::AppState;
use crate::extract::{JsonBody, QueryParams, limit};
use crate::problem::ApiError;
use crate::stream::{self, ReaderGone, StreamWriter};

/// Interval of keep-alive messages, with which both sides detect a lost connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Channels of one listener.
const LISTENED_MAX: usize = 100;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/channels", get(list))
        .route("/api/v1/channels/", get(tail).post(publish))
        .route("/api/v1/channels/{*channel}", get(tail).post(publish))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChannelsQuery {
    after: Option<String>,
    limit: Option<usize>,
}

/// List the channels whose messages in ports receive, ordered by name
#[utoipa::path(get, path = "/api/v1/channels", tag = "channels",
    params(
        ("after" = Option<String>, Query, description = "Only channels after this one: `next` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000,
            description = "Maximum number of channels; default: 50"),
    ),
    responses((status = 200, body = ChannelList), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn list(
    State(app): State<Arc<AppState>>,
    QueryParams(which): QueryParams<ChannelsQuery>,
) -> Result<Json<ChannelList>, ApiError> {
    let after = read("after", which.after.as_deref(), Channel::parse)?;
    let limit = limit(which.limit)?;
    let mut found = task_store(&app)?.channels(after.as_ref(), limit + 1).await?;
    let is_last = found.len() <= limit;
    found.truncate(limit);
    let next = found.last().filter(|_| !is_last).map(|last| last.channel.to_string());
    let channels = found
        .into_iter()
        .map(|summary| SubscribedChannel { channel: summary.channel.to_string(), subscribers: summary.subscribers });
    Ok(Json(ChannelList { channels: channels.collect(), next }))
}

/// The channel in a path.
#[derive(Debug)]
pub(crate) struct ChannelPath(Channel);

/// How the path names the channel.
#[derive(Debug, Default, Deserialize)]
struct ChannelForm {
    #[serde(default)]
    relative: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for ChannelPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path: Result<Path<String>, _> = Path::from_request_parts(parts, state).await;
        // The route of the root channel has no variable part.
        let path = path.map(|Path(path)| path).unwrap_or_default();
        let QueryParams(ChannelForm { relative }) = QueryParams::from_request_parts(parts, state).await?;
        let name = if relative { path } else { format!("/{path}") };
        Channel::parse(&name).map(Self).map_err(|error| ApiError::unreadable(ProblemCode::BadRequest, error))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishQuery {
    #[serde(default, rename = "relative")]
    _relative: bool,
}

/// Publish a message
///
/// In ports that listen to the channel, or to one above it, receive the message. The channel is the path after
/// `/channels`: `/api/v1/channels/shop/orders` is `/shop/orders`.
#[utoipa::path(post, path = "/api/v1/channels/{channel}", tag = "channels",
    params(
        ("channel" = String, Path, description = "Channel without its first slash; further slashes may be encoded"),
        ("relative" = Option<bool>, Query, description = "Whether the name of the channel has no slash at the begin"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "Requests with the same key within 24 hours publish on this channel only once"),
    ),
    request_body = PublishBody,
    responses((status = 204), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn publish(
    State(app): State<Arc<AppState>>,
    ChannelPath(channel): ChannelPath,
    QueryParams(PublishQuery { .. }): QueryParams<PublishQuery>,
    headers: HeaderMap,
    JsonBody(PublishBody { message }): JsonBody<PublishBody>,
) -> Result<StatusCode, ApiError> {
    let tasks = task_store(&app)?;
    let what = format!("publish {channel}");
    commit(&*tasks, unit(&headers, &what, vec![TaskAct::Publish { channel, message }])?).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TailQuery {
    #[serde(default, rename = "relative")]
    _relative: bool,
    also: Option<String>,
}

/// Stream the messages of channels
///
/// Server-sent events `message` from now on, without end. A message on a channel below a requested one arrives too, once
/// for each requested channel that it reaches. A client that reads too slowly, or reconnects, misses messages: an in port
/// is what receives each of them.
#[utoipa::path(get, path = "/api/v1/channels/{channel}", tag = "channels",
    params(
        ("channel" = String, Path, description = "Channel without its first slash; further slashes may be encoded"),
        ("relative" = Option<bool>, Query, description = "Whether the name of the channel has no slash at the begin"),
        ("also" = Option<String>, Query, description = "Further channels, one on each line"),
    ),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = "4XX", body = Problem),
        (status = "5XX", body = Problem)))]
pub(crate) async fn tail(
    State(app): State<Arc<AppState>>,
    ChannelPath(channel): ChannelPath,
    QueryParams(TailQuery { also, .. }): QueryParams<TailQuery>,
) -> Result<Response, ApiError> {
    let more = also.as_deref().unwrap_or_default().lines().map(|name| read("also", Some(name), Channel::parse));
    let more: Vec<Channel> = more.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let channels: Vec<Channel> = std::iter::once(channel).chain(more).collect();
    if channels.len() > LISTENED_MAX {
        let message = format!("a request can listen to at most {LISTENED_MAX} channels");
        return Err(ApiError::new(ProblemCode::BadRequest, message).hint("listen to a channel above them"));
    }
    let listener = task_store(&app)?.listen(channels).await?;
    let body = stream::body(move |writer| async move { send_all(listener, &writer).await });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, body).into_response())
}

/// Sends messages to one client.
async fn send_all(mut listener: Box<dyn ChannelListener>, writer: &StreamWriter) -> Result<(), ReaderGone> {
    // From here on no message is missed.
    writer.write(": listening\n\n".to_owned()).await?;
    loop {
        let text = tokio::select! {
            found = listener.next() => {
                let event = PublishedMessage { channel: found.channel.to_string(), message: found.message };
                let json = serde_json::to_string(&event).expect("names and JSON texts can be JSON");
                format!("event: message\ndata: {json}\n\n")
            }
            () = sleep(KEEP_ALIVE) => ": keep-alive\n\n".to_owned(),
            () = writer.gone() => return Err(ReaderGone),
        };
        writer.write(text).await?;
    }
}
