//! Methods of the task store that wait: for arrivals on a queue, and for messages on channels.

use std::time::Duration;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use cronhold_api::{ARRIVALS_WAIT_SECS, ArrivalsBody, ListenBody};
use cronhold_store::Fault;
use cronhold_store::tasks::{ArrivalMark, ChannelListener, TaskStore};
use tokio::time::timeout;

use super::reply;
use crate::problem::ApiError;
use crate::stream::{self, ReaderGone, StreamWriter};

/// Interval of empty lines on a stream without messages, with which both sides detect a lost connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Waits for arrivals, and replies with the mark that was seen if there are none for a while.
pub(super) async fn arrivals(store: &dyn TaskStore, body: ArrivalsBody) -> Response {
    let ArrivalsBody { queue, seen } = body;
    let waited = timeout(Duration::from_secs(ARRIVALS_WAIT_SECS), store.arrivals(&queue, seen)).await;
    reply(Ok::<_, Fault>(waited.unwrap_or(seen.unwrap_or(ArrivalMark::default()))))
}

/// Sends each message as a line. The listener exists when the response begins.
pub(super) async fn listen(store: &dyn TaskStore, body: ListenBody) -> Result<Response, ApiError> {
    let listener = store.listen(body.channels).await?;
    let body = stream::body(move |writer| send_messages(listener, writer));
    let kind = HeaderValue::from_static("application/x-ndjson");
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

async fn send_messages(mut listener: Box<dyn ChannelListener>, writer: StreamWriter) -> Result<(), ReaderGone> {
    loop {
        let next = tokio::select! {
            next = timeout(KEEP_ALIVE, listener.next()) => next,
            () = writer.gone() => return Err(ReaderGone),
        };
        let mut line = match next {
            Ok(message) => serde_json::to_vec(&message).expect("a message consists of strings and JSON"),
            Err(_) => Vec::new(),
        };
        line.push(b'\n');
        writer.write(line).await?;
    }
}
